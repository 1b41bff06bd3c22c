" A TOML file with equations is a model of saltus.
autocmd BufRead,BufNewFile *.toml if match(getline(1, 100), '^\s*equations\s*=') >= 0 | set filetype=saltus | endif
