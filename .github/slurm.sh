#!/bin/sh
# Starts SLURM with accounting on this machine, as a cluster of one node with two cores, for tests/slurm: as root, on a
# machine that is thrown away. Debian packages: munge slurm-wlm slurmdbd mariadb-server.
set -eu
host=$(hostname)
mkdir -p /run/munge /run/mysqld /var/log/slurm /var/spool/slurm/ctld /var/spool/slurm/d
chown munge: /run/munge
chown mysql: /run/mysqld
[ -s /etc/munge/munge.key ] || su -s /bin/sh munge -c /usr/sbin/mungekey
pgrep -x munged >/dev/null || su -s /bin/sh munge -c /usr/sbin/munged

cat >/etc/slurm/slurmdbd.conf <<END
AuthType=auth/munge
DbdHost=$host
SlurmUser=root
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
END
chmod 600 /etc/slurm/slurmdbd.conf
cat >/etc/slurm/slurm.conf <<END
ClusterName=one
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurm/ctld
SlurmdSpoolDir=/var/spool/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
OverTimeLimit=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$host
AccountingStorageEnforce=associations,limits,qos
NodeName=$host CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=cpu Nodes=$host Default=YES MaxTime=INFINITE State=UP
END

# Retries, since each daemon answers a moment after it was started.
answers() { for _ in $(seq 60); do "$@" >/dev/null 2>&1 && return; sleep 1; done; "$@"; }
pgrep -x mariadbd >/dev/null || setsid mariadbd --user=mysql --skip-networking >/var/log/slurm/mariadb.log 2>&1 &
answers mariadb-admin ping
mariadb -e "create database if not exists slurm_acct_db"
pgrep -x slurmdbd >/dev/null || slurmdbd
answers sacctmgr --noheader show cluster
sacctmgr --immediate --quiet add cluster one || true
sacctmgr --immediate --quiet add account lab || true
sacctmgr --immediate --quiet add qos short || true
sacctmgr --immediate --quiet add user root account=lab || true
sacctmgr --immediate --quiet modify user root set qos=normal,short || true
pgrep -x slurmctld >/dev/null || slurmctld
pgrep -x slurmd >/dev/null || slurmd
answers srun --time=1 --mem=100 hostname
sinfo --version
