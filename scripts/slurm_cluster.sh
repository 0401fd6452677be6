#!/usr/bin/env bash
# A Slurm cluster of two nodes on this one host, for tests: munged, slurmctld and two slurmd, all files in one folder.
#
#     scripts/slurm_cluster.sh start FOLDER   # then: export SLURM_CONF=FOLDER/slurm.conf
#     scripts/slurm_cluster.sh stop FOLDER
#
# Needs root and Debian's packages slurm-wlm and munge; start ends with 77 where they are missing.
set -euo pipefail

action=${1:?start or stop}
folder=$(realpath -m -- "${2:?a folder}")

free_ports() {
    python3 - <<'PY'
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in held))
PY
}

write_conf() {
    local host ctld first second
    host=$(hostname)
    read -r ctld first second < <(free_ports)
    # cred_expire: a job that is queued again may start only when its old credential has expired; the default is 120 s.
    cat >"$folder/slurm.conf" <<CONF
ClusterName=headway
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ctld
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=10
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$first CPUs=4
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$second CPUs=4
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" >/dev/null || { echo "$program is not installed: apt-get install slurm-wlm munge" >&2; exit 77; }
    done
    [ "$(id -u)" = 0 ] || { echo "root is needed: slurmd starts jobs as their users" >&2; exit 77; }
    mkdir -p "$folder/state" "$folder/n1" "$folder/n2"
    write_conf
    (umask 077; head -c 1024 /dev/urandom >"$folder/munge.key")
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" 2>>"$folder/munged.log"
    export SLURM_CONF=$folder/slurm.conf
    slurmctld
    slurmd -N n1
    slurmd -N n2
    for _ in $(seq 100); do
        [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 2 ] && return
        sleep 0.2
    done
    echo "the two nodes are not idle after 20 s" >&2
    sinfo >&2
    exit 1
}

stop() {
    for name in n1 n2 slurmctld munged; do
        [ -s "$folder/$name.pid" ] || continue
        pid=$(<"$folder/$name.pid")
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    done
}

case $action in
start) start ;;
stop) stop ;;
*) echo "start or stop, not $action" >&2; exit 2 ;;
esac
