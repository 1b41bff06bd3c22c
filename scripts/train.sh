#!/usr/bin/env bash
# What a build that watches itself is shown: runs, maps, orbits and branches of the gallery, a few seconds of each
# engine. The profile that it leaves is for `make fast`; nothing is kept of the answers.
#   scripts/train.sh PROGRAM
set -euo pipefail
saltus=$1
ask() { "$saltus" "$@" --json > /dev/null; }

for code in on off; do
  ask run dry_friction --until 20000 --sample 100 --native $code
  ask run drill_string --until 2000 --sample 100 --native $code
  ask run bouncing_table --until 2000 --sample 100 --native $code
  ask run lorenz --until 500 --sample 100 --native $code
  ask run stick_slip_whirl --until 500 --sample 100 --native $code
done
ask run burridge_knopoff --until 100
ask run buck --until 0.2
ask run impact_oscillator --until 2000 --sample 100
ask run newton_cradle
ask run rectifier
ask run integrate_and_fire --until 200
ask run belt_stribeck --until 500 --sample 100
ask run dry_friction --engine step --dt 0.01 --until 2000 --sample 10
ask sweep dry_friction 1/omega=0.3:7:60 -n 30 --settle 1000
ask basins buck v=11.8:14:100 i=0:0.8:100 -p Vin=13.4
ask orbit dry_friction
ask follow dry_friction omega=0.2:0.7
ask exponents lorenz --until 200
