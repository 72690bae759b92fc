# Completion of tarn's verbs, options and files, for bash. What there is comes
# from tarn itself, so it is always that of the tarn that runs.
_tarn() {
  local current=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]} words
  if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help ]]; then
    words=$("$tool" help 2>/dev/null | sed -nE 's/^  ([a-z-]+)  +[^ ].*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$words help --version" -- "$current")
  elif [[ $current == -* ]]; then
    words=$("$tool" "${COMP_WORDS[1]}" --help 2>/dev/null | sed -nE \
      's/^ +(-[A-Za-z]), (--[a-z-]+).*/\1 \2/p; t; s/^ +(--?[A-Za-z][a-z-]*).*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _tarn tarn
