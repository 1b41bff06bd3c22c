"""Pictures with matplotlib, which is imported when the first is drawn. The style is that of `saltus`, and stays here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from ._errors import usage

if TYPE_CHECKING:
    from ._trajectory import Section, Trajectory

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#555555"]
RIBBON = ["#9ecae1", "#fdbf86", "#a6d8a8", "#dcb9d5", "#f6e58d", "#d0d0d0", "#8fd3d1", "#f4a6a0"]
# Filled: something begins. Hollow: it ends. Crosses: passed through.
MARKS = {"cross": ("x", "#555555", True), "slide": ("o", "#D55E00", True), "leave": ("o", "#D55E00", False),
         "graze": ("d", "#E69F00", False), "impact": ("^", "#CC79A7", True), "close": ("s", "#009E73", True),
         "open": ("s", "#009E73", False), "chatter": ("D", "#E69F00", True), "jump": ("v", "#56B4E9", True),
         "section": (".", "#000000", True), "mode": ("*", "#000000", True)}
MOST_MARKS = 200


def style() -> dict[str, Any]:
    """Settings of matplotlib for a picture of saltus."""
    from cycler import cycler
    return {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
            "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.edgecolor": "#333333", "axes.linewidth": 0.8,
            "lines.linewidth": 1.3, "axes.prop_cycle": cycler(color=COLOURS), "svg.fonttype": "none",
            "legend.frameon": False}


def _axes(ax: Any, rows: int = 1, **more: Any) -> Any:
    from matplotlib import pyplot
    if ax is not None:
        return ax
    figure, axes = pyplot.subplots(rows, 1, squeeze=False, **more)
    figure.set_layout_engine("constrained")
    return list(axes[:, 0]) if rows > 1 else axes[0, 0]


def _mark(ax: Any, path: "Trajectory", x: str, y: str) -> None:
    events = path.events
    if len(events) > MOST_MARKS:
        return
    columns = {"t": events.t, **{name: events["state"][:, i] for i, name in enumerate(path.model.states)}}
    if x not in columns or y not in columns:
        return
    for kind in dict.fromkeys(events.kind.tolist()):
        chosen = events.kind == kind
        shape, colour, full = MARKS[kind]
        ax.plot(columns[x][chosen], columns[y][chosen], linestyle="none", marker=shape, markersize=4.5, color=colour,
                markerfacecolor=colour if full else "white", zorder=3)


def plot_trajectory(path: "Trajectory", names: Sequence[str], ax: Any = None, events: bool = True, ribbon: bool = True,
                    **how: Any) -> list[Any]:
    from matplotlib import pyplot
    shown = list(names) or list(path.model.states)[:6]
    with pyplot.rc_context(style()):
        strip = ribbon and len(path.ribbon) > 0 and ax is None
        rows = len(shown) + (1 if strip else 0)
        if ax is None:
            heights = [1.0] * len(shown) + ([0.12] if strip else [])
            axes = _axes(None, rows, sharex=True, figsize=(8, 1.2 + 1.9 * len(shown)),
                         gridspec_kw={"height_ratios": heights})
            axes = axes if isinstance(axes, list) else [axes]
        else:
            axes = list(np.atleast_1d(ax))
            if len(axes) == 1:
                axes = axes * len(shown)
        for axis, name in zip(axes, shown):
            axis.plot(path.t, path[name], label=name, **how)
            axis.set_ylabel(name)
            if events:
                _mark(axis, path, "t", name)
        if strip:
            _ribbon(axes[-1], path)
        axes[-1].set_xlabel("t")
        if ax is None:
            axes[0].set_title(path.model.name, loc="left")
    return axes


def _ribbon(ax: Any, path: "Trajectory") -> None:
    modes = list(dict.fromkeys(path.ribbon["mode"].tolist()))
    for stay in path.ribbon:
        ax.axvspan(stay["from"], stay["to"], color=RIBBON[modes.index(str(stay["mode"])) % len(RIBBON)], linewidth=0)
    ax.set_yticks([])
    ax.grid(False)
    ax.set_ylabel("mode", rotation=0, ha="right", va="center")


def plot_plane(path: "Trajectory", x: Optional[str], y: Optional[str], ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    states = path.model.states
    if len(states) < 2 and (x is None or y is None):
        raise usage("the model has one state: there is no plane", "name two columns: plot_plane(\"t\", \"x\")")
    x, y = x or states[0], y or states[1]
    with pyplot.rc_context(style()):
        axis = _axes(ax)
        axis.plot(path[x], path[y], **how)
        _mark(axis, path, x, y)
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        if ax is None:
            axis.set_title(path.model.name, loc="left")
    return axis


def plot_section(points: "Section", x: Optional[str], y: Optional[str], ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    moving = [name for name in points.model.states if len(points) and np.ptp(points[name]) > 1e-12]
    if x is None:
        x = moving[0] if moving else points.model.states[0]
        y = moving[1] if len(moving) > 1 and y is None else y
    with pyplot.rc_context(style()):
        axis = _axes(ax)
        how.setdefault("markersize", 2)
        if y is None:
            now, following = points.next_return(x)
            axis.axline((0, 0), slope=1, color="#b0b0b0", linewidth=0.8)
            axis.plot(now, following, linestyle="none", marker=".", **how)
            axis.set_ylabel(f"{x}, next")
        else:
            axis.plot(points[x], points[y], linestyle="none", marker=".", **how)
            axis.set_ylabel(y)
        axis.set_xlabel(x)
    return axis


def animate(path: "Trajectory", x: Optional[str], y: Optional[str], seconds: float) -> Any:
    from matplotlib import animation
    states = path.model.states
    x, y = x or states[0], y or states[min(1, len(states) - 1)]
    axis = plot_plane(path, x, y, color="#cccccc")
    point, = axis.plot([], [], "o", color=COLOURS[1])
    times = np.linspace(path.start.t, path.end.t, max(2, int(25 * seconds)))
    states_then = path(times)
    place = {name: i for i, name in enumerate(states)}

    def draw(k: int) -> tuple[Any, ...]:
        value = {"t": times[k], **{name: states_then[k, i] for name, i in place.items()}}
        point.set_data([value[x]], [value[y]])
        return (point,)

    return animation.FuncAnimation(axis.figure, draw, frames=len(times), interval=40, blit=True)


def plot_sweep(sweep: Any, state: Optional[str], colour: Optional[str], ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    if colour not in (None, "none", "sliding", "period", "start", "exponent"):
        raise usage(f"unknown colour {colour!r}", "known: none, sliding, period, start, exponent")
    with pyplot.rc_context(style()):
        axis = _axes(ax)
        if len(sweep.axes) == 2:
            return _plot_map(sweep, axis, colour)
        states = sweep.model.states
        moving = [name for i, name in enumerate(states) if len(sweep.points) and np.ptp(sweep.points[:, i]) > 1e-12]
        state = state or (moving or states)[0]
        run = np.repeat(np.arange(len(sweep)), np.diff(sweep.offsets))
        x, y = sweep.values[run], sweep.points[:, states.index(state)]
        how.setdefault("s", 2 if len(x) < 20000 else 0.4)
        how.setdefault("linewidths", 0)
        if colour in (None, "none"):
            axis.scatter(x, y, color="#1a1a40", **how)
        elif colour == "exponent":
            shown = axis.scatter(x, y, c=sweep.exponent[run], **how)
            axis.figure.colorbar(shown, ax=axis, label="largest exponent")
        else:
            words = _words(sweep, colour)
            for k, word in enumerate(sorted(set(words.tolist()))):
                chosen = (words == word)[run]
                axis.scatter(x[chosen], y[chosen], color=COLOURS[k % len(COLOURS)], label=word, **how)
            axis.legend(markerscale=5)
        axis.set_xlabel(sweep.names[0])
        axis.set_ylabel(state)
        axis.set_title(sweep.model.name, loc="left")
    return axis


def _words(sweep: Any, colour: str) -> Any:
    if colour == "start":
        return sweep.start
    texts = [f"{s:g} sliding" if colour == "sliding" else f"period {p}" for s, p in zip(sweep.sliding, sweep.period)]
    return np.array([text if p > 0 else "no period" for text, p in zip(texts, sweep.period)])


def _plot_map(sweep: Any, axis: Any, colour: Optional[str]) -> Any:
    first = slice(None, None, sweep._starts)
    values = (sweep.exponent if colour == "exponent" else sweep.period.astype(float))[first]
    grid = values.reshape(len(sweep.axes[1]), len(sweep.axes[0]))
    shown = axis.pcolormesh(sweep.axes[0], sweep.axes[1], grid, shading="nearest")
    axis.figure.colorbar(shown, ax=axis, label="largest exponent" if colour == "exponent" else "period")
    axis.set_xlabel(sweep.names[0])
    axis.set_ylabel(sweep.names[1])
    axis.set_title(sweep.model.name, loc="left")
    return axis


def plot_basins(basins: Any, ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch
    names = list(basins.axes)
    if len(names) != 2:
        raise usage(f"a picture needs two axes, there are {len(names)}", "index basins.group yourself")
    groups = sorted(set(np.unique(basins.group).tolist()), key=lambda g: (g < 1, g))
    greys = ["#ededed", "#c4c4c4", "#9a9a9a", "#707070"]
    colours = [COLOURS[(g - 1) % len(COLOURS)] if g >= 1 else greys[i % 4] for i, g in enumerate(groups)]
    place = {g: i for i, g in enumerate(groups)}
    with pyplot.rc_context({**style(), "axes.grid": False}):
        axis = _axes(ax)
        numbers = np.vectorize(place.__getitem__)(basins.group)
        if basins.scattered:
            axis.scatter(basins.centres[names[0]], basins.centres[names[1]], c=[colours[k] for k in numbers], s=4, **how)
        else:
            axis.pcolormesh(basins.axes[names[0]], basins.axes[names[1]], numbers.T, cmap=ListedColormap(colours),
                            vmin=-0.5, vmax=len(groups) - 0.5, **how)
        for attractor in basins.attractors:
            where = [list(basins.model.states).index(name) for name in names]
            axis.plot(attractor.points[:, where[0]], attractor.points[:, where[1]], ".", color="black", markersize=4)
        words = [f"{g}: period {basins.attractors[g - 1].period or 'none'}" if g >= 1 else basins.fate_names[g]
                 for g in groups]
        axis.legend(handles=[Patch(color=c, label=w) for c, w in zip(colours, words)], loc="upper center",
                    bbox_to_anchor=(0.5, 1.12), ncol=3)
        axis.set_xlabel(names[0])
        axis.set_ylabel(names[1])
    return axis


def plot_orbit(orbit: Any, x: Optional[str], y: Optional[str], ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    states = orbit.model.states
    x, y = x or (states[0] if len(states) > 1 else "t"), y or states[min(1, len(states) - 1)]
    if ax is not None:
        return plot_plane(orbit.path, x, y, ax=ax, **how)
    with pyplot.rc_context(style()):
        figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), gridspec_kw={"width_ratios": [2, 1]})
        figure.set_layout_engine("constrained")
        plot_plane(orbit.path, x, y, ax=axes[0], **how)
        axes[0].set_title(f"{orbit.model.name}: orbit of period {orbit.period:.6g}", loc="left")
        circle = axes[1]
        angle = np.linspace(0, 2 * np.pi, 200)
        circle.plot(np.cos(angle), np.sin(angle), color="#888888", linewidth=0.8)
        finite = orbit.multipliers[np.isfinite(orbit.multipliers)]
        inside = np.abs(finite) < 1
        for chosen, colour in ((inside, COLOURS[2]), (~inside, COLOURS[1])):
            circle.plot(finite.real[chosen], finite.imag[chosen], "o", color=colour, markersize=5)
        circle.set_aspect("equal")
        circle.set_title("multipliers", loc="left")
    return list(axes)


def plot_branch(branch: Any, measure: Optional[str], ax: Any = None, **how: Any) -> Any:
    from matplotlib import pyplot
    with pyplot.rc_context(style()):
        axis = _axes(ax)
        name = ""
        for one in (branch, *branch.branches):
            x, y, name = _branch_columns(one, measure)
            solid = one.stable if one.values.ndim == 1 else np.ones(len(x), dtype=bool)
            for wanted, line, colour in ((True, "-", "#2166ac"), (False, "--", "#b2182b")):
                chosen = solid == wanted
                shown = chosen | np.append(chosen[1:], False)  # from the point before
                axis.plot(np.where(shown, x, np.nan), np.where(shown, y, np.nan), line, color=colour, **how)
            for point in one.special:
                k = one.labels.index(point.label) if point.label in one.labels else None
                if k is not None:
                    axis.plot(x[k], y[k], "o", color="#1a1a1a", markersize=4, zorder=3)
                    axis.annotate(point.label, (x[k], y[k]), textcoords="offset points", xytext=(4, 5), fontsize=8)
        axis.set_xlabel(branch.names[0])
        axis.set_ylabel(name)
        axis.set_title(branch.model.name, loc="left")
    return axis


def _branch_columns(branch: Any, measure: Optional[str]) -> tuple[Any, Any, str]:
    """Abscissa, ordinate and the ordinate's name."""
    if branch.values.ndim == 2:
        return branch.values[:, 0], branch.values[:, 1], branch.names[1]
    table, name = branch.table(), measure or branch.model.states[0]
    if name in branch.model.states or name in table and (name == "period" or name.startswith(("min(", "max("))):
        return branch.values, table[name], name
    known = [*branch.model.states, *(["max(NAME)", "min(NAME)", "period"] if not branch.equilibria else [])]
    raise usage(f"measure={name!r}: there is no such column", f"known: {', '.join(known)}")
