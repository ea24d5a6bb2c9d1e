#!/bin/sh
# The one check of the sample board.
if [ -f count.txt ] && [ "$(cat count.txt)" != "1 2 3" ]; then
  echo "count.txt should say '1 2 3' but says '$(cat count.txt)'"
  exit 1
fi
echo "all good"
