#!/bin/bash
# Slurm on one host, as root, without systemd and cgroups: slurm.sh FOLDER NODES, in namespaces of its own for
# processes, names, mounts and network (unshare), with which it ends. All its files are in FOLDER, with one named ready
# when all nodes wait for jobs. A node whose slurmd ends starts again with empty folders, as one that reboots, once there
# is no FOLDER/down.NODE.
set -eu
d=$1 n=$2
hostname control
ip link set lo up
ip link add s0 type bridge
ip addr add 10.79.0.100/24 dev s0
ip link set s0 up
mkdir -p "$d"/{state,log,munge,pmix}
chmod 700 "$d/munge"
dd if=/dev/urandom of="$d/munge/key" bs=1024 count=1 status=none
chmod 600 "$d/munge/key"
cat >"$d/slurm.conf" <<END
ClusterName=private
SlurmctldHost=control(10.79.0.100)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$d/munge/socket,cred_expire=10
StateSaveLocation=$d/state
SlurmdSpoolDir=$d/spool.%n
SlurmctldPidFile=$d/slurmctld.pid
SlurmdPidFile=$d/slurmd.%n.pid
SlurmctldLogFile=$d/log/slurmctld
SlurmdLogFile=$d/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=10
KillWait=5
JobRequeue=1
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=n[1-$n] NodeHostname=n[1-$n] NodeAddr=10.79.0.[1-$n] Port=7000 CPUs=2 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES
END
# Steps of one user keep files of PMIx in one folder, on each node its own.
echo "PMIxCliTmpDirBase=$d/pmix" >"$d/mpi.conf"
export SLURM_CONF=$d/slurm.conf
node() {
  while :; do
    while [ -e "$d/down.$1" ]; do sleep 0.1; done
    rm -rf "$d/spool.$1" "$d/tmp.$1"
    mkdir "$d/spool.$1" "$d/tmp.$1"
    unshare --mount --uts --net sh -c "mount --bind '$d/tmp.$1' '$d/pmix' && hostname $1 && ip link set lo up &&
      while ! ip addr add 10.79.0.${1#n}/24 dev e$1 2>/dev/null; do sleep 0.1; done && ip link set e$1 up &&
      exec slurmd -D -f '$d/slurm.conf' -N $1" &
    while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
    ip link add "$1" master s0 up type veth peer name "e$1" netns $!
    wait $! || sleep 0.5
  done
}
munged --foreground --force --key-file="$d/munge/key" --socket="$d/munge/socket" --pid-file="$d/munge/pid" \
  --log-file="$d/log/munged" --seed-file="$d/munge/seed" &
while ! [ -S "$d/munge/socket" ]; do sleep 0.1; done
slurmctld -D -f "$d/slurm.conf" >/dev/null 2>&1 &
for i in $(seq "$n"); do node "n$i" >/dev/null 2>&1 & done
while [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != "$n" ]; do sleep 0.2; done
touch "$d/ready"
wait
