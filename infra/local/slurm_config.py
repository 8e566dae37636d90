"""The configuration files of the local Slurm cluster, as text."""

from dataclasses import dataclass
from pathlib import Path

NODES = ("node1", "node2", "node3", "node4")
CPUS_A_NODE = 4
# No cgroup is used; but left to itself, slurmd refuses to start in a container that has none.
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


@dataclass(frozen=True)
class ClusterLayout:
    """Where one cluster's files, sockets and ports are. `nodes` maps a virtual node to its slurmd's port."""

    folder: Path
    log: Path
    munge_socket: Path
    user: str
    host: str
    controller_port: int
    accounting_port: int
    database_port: int
    nodes: dict[str, int]


def slurm_conf(layout: ClusterLayout) -> str:
    """slurm.conf; cred_expire=5 is the least Slurm accepts, and sets how long a requeued job waits."""
    settings = {
        "ClusterName": "local",
        "SlurmctldHost": f"{layout.host}(127.0.0.1)",
        "SlurmctldPort": layout.controller_port,
        "SlurmUser": layout.user,
        "SlurmdUser": layout.user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket},cred_expire=5",
        "CredType": "cred/munge",
        "StateSaveLocation": layout.folder / "state",
        "SlurmdSpoolDir": layout.folder / "spool" / "%n",
        "SlurmctldPidFile": layout.folder / "slurmctld.pid",
        "SlurmdPidFile": layout.folder / "slurmd-%n.pid",
        "SlurmctldLogFile": layout.log / "slurmctld.log",
        "SlurmdLogFile": layout.log / "slurmd-%n.log",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "info",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "MailProg": "/bin/true",
        "ReturnToService": 2,
        "SlurmctldTimeout": 30,
        "SlurmdTimeout": 60,
        "InactiveLimit": 0,
        "KillWait": 1,
        "CompleteWait": 0,
        "MinJobAge": 300,
        "JobRequeue": 1,
        "UnkillableStepTimeout": 10,
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "PriorityType": "priority/basic",
        "SlurmdParameters": "config_overrides",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": layout.accounting_port,
        # without a socket of its own here, sacctmgr stalls for minutes
        "AccountingStoragePass": layout.munge_socket,
        "AccountingStoreFlags": "job_comment",
    }
    nodes = [
        f"NodeName={node} NodeHostname={layout.host} NodeAddr=127.0.0.1 Port={port}"
        f" CPUs={CPUS_A_NODE} RealMemory=1000 State=UNKNOWN"
        for node, port in layout.nodes.items()
    ]
    partition = f"PartitionName=main Nodes={','.join(layout.nodes)} Default=YES MaxTime=INFINITE State=UP"
    return "\n".join([*(f"{name}={value}" for name, value in settings.items()), *nodes, partition, ""])


def slurmdbd_conf(layout: ClusterLayout) -> str:
    """slurmdbd.conf; slurmdbd insists that only its user may read it."""
    settings = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "DbdHost": layout.host,
        "DbdAddr": "127.0.0.1",
        "DbdPort": layout.accounting_port,
        "SlurmUser": layout.user,
        "DebugLevel": "info",
        "LogFile": layout.log / "slurmdbd.log",
        "PidFile": layout.folder / "slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": layout.database_port,
        "StorageUser": "slurm",
        "StoragePass": "slurm",
        "StorageLoc": "slurm_acct_db",
    }
    return "\n".join([*(f"{name}={value}" for name, value in settings.items()), ""])
