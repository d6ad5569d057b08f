#!/usr/bin/env bash
# run_commands.sh BINARY ROOT DOCUMENT...: runs every command in the code blocks of ROOT/DOCUMENT and
# fails if one exits with an error, or if a block holds something this script does not know how to run.
#
#   ```sh        every line is a command
#   ```console   lines that begin with "$ " are commands, the others are their output
#   ```text, ```json   shown only
#
# A command may end with a comment and continue after a backslash. It runs in an empty folder with the files named
# below; `./run` is the built program, without the build. A server that a command starts listens on a free port, which
# replaces 127.0.0.1:8080 in later commands, and runs until the next one starts.
set -uo pipefail
binary=$(readlink -f "$1")
root=$(readlink -f "$2")
shift 2
limit=${VITRINE_COMMAND_SECONDS:-60}

work=$(mktemp -d)
server=
stop_server() {
  [ -z "$server" ] && return 0
  kill "$server" 2>/dev/null
  wait "$server"
  local status=$?
  server=
  return $status
}
trap 'stop_server; rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/files"
cd "$work/files" || exit 1

ln -s "$root/models/demo.gguf" model.gguf
ln -s "$root/models/draft.gguf" reference.gguf
for i in {1..20}; do echo "Chapter $i. The old house stood by the sea, and the wind sang in its roof."; done >book.txt
echo '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}' >schema.json
printf '%s\n' '{"name": "Ada"}' '{"name": 7}' >lines.txt

# Stand-ins for the programs that the documents call.
cat >"$work/bin/vitrine" <<END
#!/usr/bin/env bash
[ "\${1:-}" = serve ] && [[ " \$* " != *" --port "* ]] && set -- "\$@" --port 0
exec "$binary" "\$@"
END
cat >run <<END
#!/usr/bin/env bash
[ \$# -eq 0 ] && set -- serve
exec vitrine "\$@"
END
cat >"$work/bin/curl" <<END
#!/usr/bin/env bash
exec $(command -v curl || echo /curl/was/not/found) --silent --show-error --fail-with-body "\$@"
END
chmod +x "$work/bin/vitrine" "$work/bin/curl" run
export PATH=$work/bin:$PATH

failures=0 ran=0 where=
fail() {
  echo "$where: $*" >&2
  failures=$((failures + 1))
}

# start COMMAND: in the background, until its ready line tells the address.
address=
start() {
  stop_server || fail "the server before this one ended with status $?"
  : >server.out  # of the server before this one, whose port must not be taken for this one's
  bash -c "exec $1" </dev/null >server.out 2>server.err &
  server=$!
  local i
  for ((i = 0; i < limit * 10; i++)); do
    address=$(sed -n 's|^vitrine is ready: http://\([^ ]*\).*|\1|p' server.out)
    [ -n "$address" ] && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "the server did not become ready: $1"
  cat server.out server.err >&2
}

run_command() {
  local command=$1 output status
  command=${command//127.0.0.1:8080/${address:-127.0.0.1:8080}}
  command=${command//--port 8080/--port 0}
  # The same command on a model that is there at once.
  command=${command//--random llama-8b:q4_k_m/--random qwen3-0.6b:q4_k_m -p 8 -n 2 -r 1}
  command=$(sed -E 's/[[:space:]]+#[^"'\'']*$//' <<<"$command")
  if [ -n "${VITRINE_SANITIZED:-}" ] && [[ $command == *--sandbox* ]]; then
    echo "left out, since a sanitizer does what the sandbox forbids: $command" >&2
    return
  fi
  ran=$((ran + 1))
  case $command in
    "git clone ADDRESS-OF-THIS-REPOSITORY vitrine && cd vitrine") return ;;
    "./test" | "./test "*)  # would build and run this very test: its arguments are checked
      [[ $command =~ ^\./test(\ (release|debug|asan|tsan)(\ -L\ [a-z]+)?)?$ ]] || fail "unknown arguments: $command"
      [ -x "$root/test" ] || fail "there is no ./test"
      return
      ;;
    ./run | "./run serve"* | "vitrine serve"*)
      start "$command"
      return
      ;;
    "./run "* | "vitrine "*) ;;
    "curl "*) [ -n "$server" ] || fail "no command before it starts a server: $command" ;;
    *)
      fail "this test does not know how to run: $command"
      return
      ;;
  esac
  output=$(timeout "$limit" bash -c "$command" </dev/null 2>&1)
  status=$?
  [ $status -eq 0 ] || fail "exit status $status: $command"$'\n'"$output"
}

# Splits a document into commands: `kind` is that of the block we are in, empty outside of one.
run_document() {
  where=$1
  local file=$1 line number=0 kind= command= before=
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    where=$(basename "$file"):$number
    if [[ $line =~ ^[[:space:]]*'```'(.*)$ ]]; then
      [ -z "$command" ] || fail "the block ends within a command: $command"
      command=
      if [ -n "$kind" ]; then
        kind=
      else
        kind=${BASH_REMATCH[1]}
        [[ $kind =~ ^(sh|console|text|json)$ ]] || fail "a block of kind '$kind'; expected sh, console, text or json"
        kind=${kind:-unknown}
      fi
    elif [ -z "$kind" ]; then
      [[ $line == "    "* && -z $before ]] && fail "an indented block; expected a fenced one: $line"
      before=${line// /}
    elif [ -n "$command" ]; then
      command+=$line
    elif [ "$kind" = sh ]; then
      command=$line
    elif [ "$kind" = console ] && [[ $line == "$ "* ]]; then
      command=${line#"$ "}
    fi
    if [[ $command == *\\ ]]; then
      command=${command%\\}
    elif [ -n "$command" ]; then
      run_command "$command"
      command=
    fi
  done <"$file" || fail "cannot be read"
  [ -z "$kind" ] || fail "a block without an end"
}

for document in "$@"; do
  run_document "$root/$document"
done
where="after the last command"
stop_server || fail "the last server ended with status $?"
[ "$ran" -gt 0 ] || fail "no commands were found"
echo "$ran commands, $failures failures"
[ "$failures" -eq 0 ]
