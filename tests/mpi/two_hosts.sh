#!/bin/sh
# Goal: a job over two nodes: shared memory within each, TCP between them. Method: two network
# namespaces joined by a veth pair stand for two hosts. Open MPI's launch agent enters them instead
# of calling ssh, and names each as a host, so that MPI takes them for two nodes.
#
# two_hosts.sh MPIRUN [-n RANKS] PROGRAM [ARGUMENT...] runs the program on RANKS ranks, half of them
# per host, four by default. Exits with its status, or with 77 and a reason where namespaces are not allowed. The names of everything that
# it makes have its process number. They are removed at its end, however that comes.
set -u
mpirun=$1
shift

skip() { echo "skipped: $1"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "network namespaces need root here"
command -v ip >/dev/null 2>&1 || skip "no command ip (iproute2)"
command -v unshare >/dev/null 2>&1 || skip "no command unshare"

# Everything happens in a mount namespace of its own: /etc/hosts is ours alone, and names and files
# vanish with it, even after SIGKILL.
if [ "${TWO_HOSTS_INSIDE:-}" != "$$" ]; then
    unshare --mount --propagation private true 2>/dev/null || skip "mount namespaces are not allowed"
    exec unshare --mount --propagation private sh -c \
        'TWO_HOSTS_INSIDE=$$ exec sh "$@"' sh "$0" "$mpirun" "$@"
fi
unset TWO_HOSTS_INSIDE
ranks=4
[ "$1" != -n ] || { ranks=$2; shift 2; }
each=$(((ranks + 1) / 2))
yields=$((ranks > $(nproc)))

mkdir -p /run/netns && mount -t tmpfs -o mode=0755 none /run/netns ||
    skip "no file system can be mounted"
scratch=/run/netns/scratch
mkdir "$scratch" || exit 1
export TMPDIR="$scratch"
a=fa$$ b=fb$$

clean_up()
{
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

ip netns add "$a" 2>/dev/null && ip netns add "$b" 2>/dev/null || skip "ip netns add is not allowed"
ip link add "v$a" netns "$a" type veth peer name "v$b" netns "$b" 2>/dev/null ||
    skip "veth pairs are not allowed"
for host in "$a 10.213.77.1 v$a" "$b 10.213.77.2 v$b"; do
    # shellcheck disable=SC2086
    set -- $host "$@"
    ip -n "$1" link set lo up && ip -n "$1" addr add "$2/24" dev "$3" && ip -n "$1" link set "$3" up ||
        skip "a network interface cannot be configured"
    shift 3
done
printf '127.0.0.1 localhost\n10.213.77.1 %s\n10.213.77.2 %s\n' "$a" "$b" >"$scratch/hosts"
mount --bind "$scratch/hosts" /etc/hosts || skip "/etc/hosts cannot be replaced"

# agent HOST COMMAND...: what ssh would do.
cat >"$scratch/agent" <<END
#!/bin/sh
TMPDIR=$scratch
END
cat >>"$scratch/agent" <<'END'
export TMPDIR
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
END
chmod +x "$scratch/agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat >"$scratch/start" <<'END'
#!/bin/sh
hostname "$1"
shift
exec "$@"
END
chmod +x "$scratch/start"
ip netns exec "$a" unshare --uts "$scratch/start" "$a" \
    timeout --kill-after=5 "${TWO_HOSTS_SECONDS:-280}" \
    "$mpirun" --oversubscribe --bind-to none -H "$a:$each,$b:$each" -np "$ranks" \
    --mca mpi_yield_when_idle "$yields" --mca plm_rsh_agent "$scratch/agent" --mca btl self,vader,tcp \
    --mca btl_tcp_if_include 10.213.77.0/24 --mca oob_tcp_if_include 10.213.77.0/24 \
    ${TWO_HOSTS_PASS:-} "$@"
