# Runs one Postgres server for as long as the process that started this script lives (its parent).
#
#   supervise.sh POSTGRES DATA LOG FOLDER
#
# Standard input is a pipe that the parent holds. A line on it is the name of the
# signal by which the server is stopped. If the pipe ends without a line, the parent
# has ended: the server is stopped at once, and FOLDER is removed.
set -u
exec 3<&0
"$1" -D "$2" </dev/null >>"$3" 2>&1 3<&- &
server=$!
(
  if read -r signal; then
    result=0
  else
    signal=QUIT
    result=7
  fi
  # From here on the signal below may not end us before we have said our result.
  trap '' TERM
  # Again until it is heard: a shell starts its background jobs deaf to INT and QUIT, and
  # so they are until Postgres has set up its own handlers.
  while kill -s "$signal" "$server" 2>/dev/null; do
    sleep 0.1
  done
  exit "$result"
) <&3 &
watcher=$!
exec 3<&-

wait "$server"
status=$?
# A server that ended by itself leaves the watcher at its pipe.
kill "$watcher" 2>/dev/null
wait "$watcher"
if [ $? -eq 7 ]; then
  rm -rf "$4"
fi
exit "$status"
