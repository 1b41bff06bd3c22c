" Models of saltus: TOML whose texts are formulas. Copy editors/vim to ~/.vim (or ~/.config/nvim).
if exists("b:current_syntax")
  finish
endif

syntax match saltusComment /#.*$/ contains=@Spell
syntax match saltusTable /^\s*\[[^]]*\]/
syntax match saltusKey /^\s*\zs[A-Za-z0-9_.-]\+\ze\s*=\s*\("\|'\|-\|+\|[0-9]\|{\|\[\|true\|false\)/
syntax match saltusNumber /\<\d\+\(\.\d\+\)\?\([eE][-+]\?\d\+\)\?\>/
syntax keyword saltusBoolean true false
syntax keyword saltusFunction contained sign unit abs min max sat step if mod floor ceil round sin cos tan asin acos atan atan2
syntax keyword saltusFunction contained sinh cosh tanh exp log sqrt sum unit
syntax keyword saltusWord contained and or not pi e t
syntax match saltusRate contained /\<[A-Za-z_][A-Za-z0-9_]*\(\[[^]]*\]\)\?'\+/
syntax match saltusOperator contained /[-+*\/^<>=]/
syntax region saltusFormula start=/"/ end=/"/ oneline contains=saltusFunction,saltusWord,saltusNumber,saltusOperator
syntax region saltusEquations start=/"""/ end=/"""/ contains=saltusComment,saltusFunction,saltusWord,saltusNumber,saltusRate,saltusOperator keepend
syntax region saltusPlain start=/^\s*\(name\|ref\|direction\|engine\|between\|outside\|file\)\s*=\s*\zs"/ end=/"/ oneline

highlight default link saltusComment Comment
highlight default link saltusTable Structure
highlight default link saltusKey Identifier
highlight default link saltusNumber Number
highlight default link saltusBoolean Boolean
highlight default link saltusFunction Function
highlight default link saltusWord Keyword
highlight default link saltusRate Type
highlight default link saltusOperator Operator
highlight default link saltusFormula String
highlight default link saltusPlain String

syntax sync fromstart
setlocal commentstring=#\ %s
let b:current_syntax = "saltus"
