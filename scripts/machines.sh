# shellcheck shell=bash disable=SC2154  # variables of scripts/check
# The stages of `scripts/check machines`, which reads this file: both commands
# of README.md on bare Debian systems, each in a folder below build/machines,
# and a build for aarch64 that runs under qemu.
#
# What runs in such a system is in namespaces of its own, of mounts and of
# processes. When it ends, or is ended, no process and no mount of it is left,
# and since its mounts were never seen outside, nothing outside is removed
# through them.

readonly machines=$PWD/build/machines
contained= # the process, while something runs in a system

# Debian's names of what `scripts/check machines` calls 12 and 13.
declare -rA suites=([12]=bookworm [13]=trixie)

remove_machines() {
  if [[ -n $contained ]]; then
    kill -KILL "$contained"
    wait "$contained"
  fi 2>/dev/null
  if grep -qF " $machines" /proc/self/mountinfo; then
    echo "Something is mounted below $machines; it stays." >&2
  else
    rm -rf --one-file-system "$machines"
  fi
}

# contain [OPTION...] COMMAND...: in namespaces of its own, in the background,
# so that a signal ends the wait at once.
contain() {
  local result=0
  unshare --mount --pid --fork --kill-child "$@" &
  contained=$!
  wait "$contained" || result=$?
  contained=
  return "$result"
}

# enter KIND SUITE COMMAND...: in that system, in its copy of the tree, as root.
# (The shell ignores Ctrl-C for what is in the background; tests do not.) With a
# KIND of executables, as the kernel's list of them has it, the kernel
# hands such files to the system's qemu. That takes a namespace of users, which
# has a list of its own (Linux 6.7); the machine's own list stays as it is.
enter() {
  local users=()
  [[ -z $1 ]] || users=(--user --map-root-user)
  # shellcheck disable=SC2016  # the inner shell's
  contain "${users[@]}" bash -c 'kind=$0 root=$1 list=$1/proc/sys/fs/binfmt_misc
    shift
    mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
      mount -t proc proc "$root/proc" || exit
    if [[ -n $kind ]]; then
      mount -t binfmt_misc none "$list" &&
        echo "$kind:$root/usr/bin/qemu-aarch64-static:F" >"$list/register" ||
        exit
    fi
    exec chroot "$root" env -i --default-signal=INT,QUIT -C /root/tarn \
      HOME=/root TERM=dumb LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$1" "$machines/$2" "${@:3}"
}

inside() {
  enter '' "$@"
}

# The mirror of Debian that this machine's apt uses. That of security updates
# is Debian's too, by another label.
mirror() {
  # shellcheck disable=SC2016  # apt's
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' 'Component: main' 2>/dev/null | sed -n 1p
}

# A minimal system, with this machine's way to the mirror, and the tree as it
# is now, without what was built in it.
make_machine() {
  local suite=$1
  local root=$machines/$suite
  contain debootstrap --variant=minbase "$suite" "$root" "$(mirror)" || return
  apt-config dump | grep '^Acquire::[a-z]*::Proxy' \
    >"$root/etc/apt/apt.conf.d/90proxy"
  mkdir "$root/root/tarn"
  tar -c --exclude './build*' --exclude ./.git . | tar -x -C "$root/root/tarn"
}

# What the stage NAME, a check itself, said that it skipped or was warned of.
adopt() {
  local name=$1 line
  while IFS= read -r line; do
    skipped+=("$name: $line")
  done < <(listed_below 'Skipped:' "$(log_of "$name")")
  while IFS= read -r line; do
    warnings+=("$name: $line")
  done < <(listed_below 'Warnings in' "$(log_of "$name")")
}

listed_below() {
  sed -n "/^   $1/,/^   [^ ]/s/^     //p" "$2"
}

# A system with the demo's results in it, unless it is there.
demo_stages() {
  local suite=$1 name=$2
  [[ ! -d $machines/$suite ]] || return 0
  quiet "$name: base system" make_machine "$suite" &&
    quiet "$name: scripts/demo" inside "$suite" scripts/demo
}

debian_stages() {
  local suite=${suites[$1]} name="debian $1"
  demo_stages "$suite" "$name"
  [[ -d $machines/$suite/root/tarn ]] || return
  quiet "$name: scripts/check fast" inside "$suite" scripts/check fast
  adopt "$name: scripts/check fast"
}

# --- aarch64 ----------------------------------------------------------------

# ELF files of 64 bits for machine 183, and the bits of them that count.
aarch64=':aarch64:M:'
aarch64+=':\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
aarch64+=':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'
aarch64+='\xfe\xff\xff\xff'
readonly aarch64

build_aarch64() {
  configure_and_build aarch64 all
}

# Programs give the answers that they give on this machine; figures of time are
# left out.
compare_programs() {
  local command result=0
  local commands=(
    'examples/hello'
    'examples/synced'
    'tarn why data/traces/train-step.tarn --top 5'
    'tarn plan data/plans/mobilenet.csv --verify'
    'tarn replay @bert-layer data/traces/train-step.tarn -o json'
  )
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086  # words
    if diff <(build/$command | untimed) \
      <(qemu-aarch64-static build-aarch64/$command | untimed); then
      echo "the same: $command"
    else
      echo "DIFFERENT: $command"
      result=1
    fi
  done
  return "$result"
}

# JSON by lines, less what was measured in time.
untimed() {
  sed 's/,"/\n"/g' | grep -vE '_(ms|ns)[a-z0-9_]*":|[0-9] s$'
}

# What a function of this script does, inside.
inside_function() {
  inside "$1" bash -c "$(declare -f); $2"
}

aarch64_stages() {
  local suite=${suites[12]}
  demo_stages "$suite" 'debian 12' || return
  quiet 'aarch64: packages' inside "$suite" scripts/packages aarch64 || return
  quiet 'aarch64: build' inside_function "$suite" build_aarch64 || return
  quiet 'aarch64: programs' inside_function "$suite" compare_programs
  if enter "$aarch64" "$suite" true 2>/dev/null; then
    quiet 'aarch64: tests' enter "$aarch64" "$suite" ctest --preset aarch64
    collect_skipped 'aarch64: tests' "$machines/$suite/root/tarn/build-aarch64"
  else
    skip 'aarch64: tests' 'needs binfmt_misc in a namespace of users (Linux 6.7)'
  fi
}

# --- all of them ------------------------------------------------------------

# machines_stages [12|13|aarch64]...: all of them unless some are named.
machines_stages() {
  local machine
  (($# > 0)) || set -- 12 13 aarch64
  for machine; do
    [[ $machine == aarch64 || -n ${suites[$machine]-} ]] || usage
  done
  if ((EUID != 0)) || ! unshare --mount --pid --fork true 2>/dev/null; then
    skip 'machines' 'needs root, and namespaces of mounts and processes'
    return
  fi
  scripts/packages machines || exit 1
  if [[ -z $(mirror) ]]; then
    skip 'machines' "no mirror of Debian in this machine's apt configuration"
    return
  fi
  trap remove_machines EXIT
  trap 'exit 130' INT TERM HUP
  remove_machines
  mkdir -p "$machines"
  for machine; do
    case $machine in
      aarch64) aarch64_stages ;;
      *) debian_stages "$machine" ;;
    esac
  done
}
