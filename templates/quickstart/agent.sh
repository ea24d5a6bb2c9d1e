#!/bin/sh
# A stand-in for a coding agent: does what each ticket of the sample board asks, the way a real one would.
# The prompt is on stdin and in $DIRIGENT_PROMPT_FILE; `tk` talks to the runner.
set -eu
title=$(tk show | sed -n 's/^# [^:]*: //p' | head -n 1)
tk comment "starting on: $title"

case "$title" in
  "Write the greeting")
    echo "Good morning." > greeting.txt ;;
  "Write the farewell")
    echo "Good night." > farewell.txt ;;
  "Put the dialogue together")
    # Both parts are there, because this ticket depends on theirs.
    cat greeting.txt farewell.txt > dialogue.txt ;;
  "Count to three")
    # The first attempt is wrong; the check says so, and the second one reads what it said.
    if [ "$DIRIGENT_PHASE" = rework ]; then echo "1 2 3" > count.txt; else echo "1 2 4" > count.txt; fi ;;
  "Paint the door")
    # A person's answer reaches the next attempt: on the ticket, or in the prompt where it was given by command.
    colour=$( { tk show; cat "$DIRIGENT_PROMPT_FILE"; } | grep -oiE '^(blue|green|red|white)' | head -n 1 || true)
    # An attempt that was stopped may have painted it already, and said so.
    if [ -n "$colour" ]; then echo "The door is $colour." > door.txt; elif [ ! -e door.txt ]; then
    tk blocked "Which colour? The ticket does not say: blue, green, red or white?"
    exit 0; fi ;;
  *)
    tk blocked "I only know the tickets of the sample board."
    exit 0 ;;
esac

git add -A
# An attempt that was stopped may have left the work done already.
git diff --cached --quiet || git commit -q -m "$title"
# What people said is answered by its name.
for remark in $(sed -n 's/.*(remark \(r[0-9a-f]*\)).*/\1/p' "$DIRIGENT_PROMPT_FILE"); do
  tk answer "$remark" fixed "done as you said" || tk answer "$remark" explained "it is as you say already"
done
tk done "$title: done"
