#!/bin/sh
# A chat as a person has it, in a shell in tmux: edit a line, paste three lines, interrupt an answer,
# ask again, stop and go on, resize, quit. The screen is looked at, and the terminal's modes.
#   sh chat_tmux.sh HF_RUN MODEL
# Exit code 77: there is no tmux.
set -eu
hf_run=$1 model=$2
command -v tmux >/dev/null || { echo "skipped: there is no tmux"; exit 77; }

folder=$(mktemp -d)
# shellcheck disable=SC2329  # called by trap
clean_up() {
    tmux_here kill-server 2>/dev/null || true
    rm -rf "$folder"
}
tmux_here() { TMUX_TMPDIR=$folder tmux -f /dev/null -L chat "$@"; }
trap clean_up EXIT

screen() { tmux_here capture-pane -p -t chat; }
fail() {
    echo "chat_tmux: $1; the screen:"
    screen || true
    exit 1
}
# keys KEY ...: as tmux names them
keys() { tmux_here send-keys -t chat "$@"; }
# Waits until a line of the screen matches a pattern of grep.
wait_for() {
    tries=0
    until screen | grep -q -e "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || fail "'$1' does not come"
        sleep 0.1
    done
}
# Waits until this is the last line that is not empty.
wait_for_prompt() {
    tries=0
    until [ "$(screen | grep -v '^$' | tail -n 1)" = "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || fail "no prompt '$1'"
        sleep 0.1
    done
}

env -i PATH="$PATH" HOME="$folder" TERM=screen TMUX_TMPDIR="$folder" \
    tmux -f /dev/null -L chat new-session -d -s chat -x 80 -y 24 "env PS1='shell: ' sh"
wait_for_prompt 'shell:'
keys "stty -g >$folder/before" Enter
keys "$hf_run -m $model --temp 0 --ignore-eos --max-tokens 30" Enter
wait_for_prompt '>'

# A line is edited: words taken back, a letter put in the middle.
keys 'What do cwos' BSpace BSpace BSpace 'ows eat' Left Left Left 'to ' C-e '?' Enter
wait_for '^> What do cows to eat?$'
wait_for_prompt '>'
keys '/reset' Enter
wait_for 'a new conversation'
wait_for_prompt '>'

# Three lines pasted are one message, which waits for Enter.
printf 'one\ntwo\nthree' >"$folder/lines"
tmux_here load-buffer "$folder/lines"
tmux_here paste-buffer -p -t chat
wait_for_prompt 'three'
keys Enter
wait_for_prompt '>'
keys '/stats' Enter
wait_for '2 turns'
wait_for_prompt '>'
keys '/quit' Enter
wait_for_prompt 'shell:'

# An answer is interrupted, and asked for again.
keys "clear; $hf_run -m $model --temp 0 --ignore-eos --max-tokens 1900" Enter
wait_for_prompt '>'
keys 'Tell me a story.' Enter
wait_for 'nce'
keys C-c
wait_for '(interrupted)'
wait_for_prompt '>'
keys '/retry' Enter
wait_for '/retry'
keys C-c
wait_for_prompt '>'

# Stopped in the middle of a line, it leaves the shell its terminal; the line is there afterwards.
keys 'half a li'
wait_for_prompt '> half a li'
keys C-z
wait_for_prompt 'shell:'
keys "stty -g >$folder/stopped; fg" Enter
wait_for_prompt '> half a li'

# The window changes; the line is drawn anew and can be edited further.
tmux_here resize-window -t chat -x 50 -y 18
keys 'ne' C-a 'one '
wait_for_prompt '> one half a line'
keys C-c
wait_for_prompt '>'
keys C-c
wait_for 'Ctrl-C again leaves'
wait_for_prompt '>'
tmux_here resize-window -t chat -x 80 -y 24
keys '/qiut' Enter
wait_for 'nearest is /quit'
wait_for_prompt '>'
keys Up  # the line before
wait_for_prompt '> /qiut'
keys C-u '/quit' Enter
wait_for_prompt 'shell:'
keys "echo left with \$?; stty -g >$folder/after" Enter
wait_for '^left with 0$'
wait_for_prompt 'shell:'

for when in stopped after; do
    cmp "$folder/before" "$folder/$when" || fail "the modes of the terminal are not as before"
done
[ "$(head -n 1 "$folder/.local/state/hipfire/history")" = 'What do cows to eat?' ] ||
    fail 'the history does not begin with the first message'
