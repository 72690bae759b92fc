#!/bin/sh
# Runs ranks on two hosts: network namespaces that a pair of virtual interfaces
# joins, each with a name and a TMPDIR of its own. As root.
#
#   hosts.sh openmpi|mpich RANKS_PER_HOST PROGRAM ARGUMENT...
#   hosts.sh probe           whether there can be such hosts here
#
# Prints what the ranks print, and at last
#
#   crossed BYTES      what has passed the first host's interface, both ways
#   status NUMBER      of mpirun
#   left NUMBER        processes that are there after that
#
# With TARN_CUT=1 the link is cut when a rank has said "begun", and mpirun, which
# waits for the other host, is ended when no rank runs any more.
set -u
mpi=$1

here=$(mktemp -d)
name=tarn$$
agent=$here/agent

clean_up() {
  for i in 1 2; do
    # shellcheck disable=SC2046  # numbers
    kill -9 $(ip netns pids "$name-$i" 2>/dev/null) 2>/dev/null
    ip netns del "$name-$i" 2>/dev/null
  done
  rm -rf "$here"
}
trap clean_up EXIT
trap 'exit 1' HUP INT PIPE TERM

set_up() {
  for i in 1 2; do
    ip netns add "$name-$i" || return
    mkdir "$here/$name-$i" || return
  done
  ip link add v1 netns "$name-1" type veth peer name v2 netns "$name-2" || return
  for i in 1 2; do
    ip -n "$name-$i" addr add "10.231.77.$i/24" dev "v$i" || return
    ip -n "$name-$i" link set "v$i" up || return
    ip -n "$name-$i" link set lo up || return
  done
}

# Stands in for ssh: [OPTION]... HOST COMMAND...
write_agent() {
  cat >"$agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
on=$name-\${1##*.}
shift
exec ip netns exec "\$on" unshare -u sh -c "hostname \$on; exec sh -c '\$*'"
END
  cat >"$here/rank" <<END
#!/bin/sh
export TARN_HOST=\$(hostname) TMPDIR=$here/\$(hostname)
export TARN_COMM_TIMEOUT_MS=${TARN_COMM_TIMEOUT_MS-}
exec "\$@"
END
  chmod +x "$agent" "$here/rank"
}

launch() {
  case $mpi in
    openmpi)
      set -- mpirun.openmpi --mca plm rsh --mca plm_rsh_agent "$agent" \
        --mca oob_tcp_if_include 10.231.77.0/24 \
        --mca btl self,vader,tcp --mca btl_tcp_if_include 10.231.77.0/24 \
        --mca pml ob1 --mca mpi_yield_when_idle 1 --bind-to none \
        --allow-run-as-root \
        --host "10.231.77.1:$each,10.231.77.2:$each" "$here/rank" "$@"
      ;;
    mpich)
      # By its shared memory it would pass the interfaces by.
      set -- mpirun.mpich -genv UCX_TLS tcp,self -launcher ssh \
        -launcher-exec "$agent" -localhost 10.231.77.1 \
        -hosts "10.231.77.1:$each,10.231.77.2:$each" -n $((2 * each)) \
        "$here/rank" "$@"
      ;;
  esac
  # shellcheck disable=SC2016  # the inner shell's
  exec ip netns exec "$name-1" unshare -u env "TMPDIR=$here/$name-1" \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    sh -c 'hostname "$1"; shift; exec timeout 60 "$@"' sh "$name-1" "$@"
}

# Bytes that have passed the interface of the first host.
crossed() {
  ip -n "$name-1" -s link show v1 | awk '
    counts { sum += $1; counts = 0 }
    /bytes/ { counts = 1 }
    END { print sum + 0 }'
}

# The ranks of both hosts that still run.
ranks() {
  for i in 1 2; do
    for pid in $(ip netns pids "$name-$i"); do
      [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$1" ] || echo "$pid"
    done
  done
}

# wait_until SECONDS COMMAND...
wait_until() {
  tries=$(($1 * 10))
  shift
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.1
  done
}

is_up() { ip -n "$name-$1" link show "v$1" | grep -q 'state UP'; }
has_begun() { grep -q begun "$here/output"; }
has_ended() { [ -z "$(ranks "$1")" ]; }

cut_link() {
  wait_until 30 has_begun || return
  sleep 0.5
  ip -n "$name-1" link set v1 down
  wait_until 30 has_ended "$1"
  left=$(ranks "$1" | wc -l)
  ip -n "$name-1" link set v1 up
  sleep 1
  kill "$2" 2>/dev/null
}

set_up || exit
wait_until 10 is_up 1 && wait_until 10 is_up 2 || exit
[ "$mpi" != probe ] || exit 0
each=$2
shift 2
write_agent
launch "$@" >"$here/output" 2>&1 &
launcher=$!
left=
program=$(basename "$1" | cut -c 1-15)
[ "${TARN_CUT-}" != 1 ] || cut_link "$program" "$launcher"
wait "$launcher"
status=$?
cat "$here/output"
echo "crossed $(crossed)"
echo "status $status"
echo "left ${left:-$(ranks "$program" | wc -l)}"
