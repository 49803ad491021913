# Runs one Postgres server for as long as the process that started us lives.
#
#   supervise.sh POSTGRES DATA LOG FOLDER
#
# Standard input is a pipe that our parent holds. A line on it is the name of the
# signal to stop the server with. Its end without a line means that the parent is
# gone, however it went: the server is stopped at once and FOLDER removed.
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
