"""The closed vocabularies of events. On the wire each is a string: the bytes never change with a new word, and a reader
that does not know it says so instead of taking it for another."""

from __future__ import annotations

from enum import StrEnum


class FaultClass(StrEnum):
    """What kind of thing failed (the classes of public failure reports, see docs/glossary.md)."""

    GPU_HARDWARE = "gpu_hardware"
    GPU_MEMORY_ECC = "gpu_memory_ecc"
    NVLINK = "nvlink"
    NETWORK_IB = "network_ib"
    NCCL_TIMEOUT = "nccl_timeout"
    HOST_HARDWARE = "host_hardware"
    HOST_OOM = "host_oom"
    STORAGE_IO = "storage_io"
    CUDA_OOM = "cuda_oom"
    USER_CODE = "user_code"
    DATA = "data"
    NUMERIC_NAN = "numeric_nan"
    SCHEDULER_TIMEOUT = "scheduler_timeout"
    PREEMPTION = "preemption"
    NODE_LOST = "node_lost"
    SOFTWARE_ENV = "software_env"
    HANG_NO_LOG = "hang_no_log"
    STRAGGLER = "straggler"
    BENIGN_NOISE = "benign_noise"
    UNKNOWN = "unknown"


class Scope(StrEnum):
    """How far a fault reaches."""

    NODE = "node"
    JOB = "job"
    CLUSTER = "cluster"
    UNKNOWN = "unknown"


class Remedy(StrEnum):
    """What should be done about a fault, before any policy is asked."""

    RESTART = "restart"
    RESTART_EXCLUDING_NODE = "restart_excluding_node"
    TERMINATE_NO_RETRY = "terminate_no_retry"
    IGNORE = "ignore"
    WAIT = "wait"


class LineRole(StrEnum):
    """What a matched line can be in an incident."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"


class Witness(StrEnum):
    """Who says that something failed: the job's own output, or the node where it ran."""

    OUTPUT = "output"
    NODE_LOG = "node_log"
    NODE_METRIC = "node_metric"


class AttemptState(StrEnum):
    """An attempt's life, in Slurm's words; HELD is PENDING with priority 0, REQUEUED means succeeded by another."""

    PENDING = "PENDING"
    HELD = "HELD"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    PREEMPTED = "PREEMPTED"
    REVOKED = "REVOKED"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    REQUEUED = "REQUEUED"
    UNKNOWN = "UNKNOWN"


FINAL_STATES = frozenset(
    {
        AttemptState.COMPLETED,
        AttemptState.FAILED,
        AttemptState.CANCELLED,
        AttemptState.TIMEOUT,
        AttemptState.NODE_FAIL,
        AttemptState.OUT_OF_MEMORY,
        AttemptState.BOOT_FAIL,
        AttemptState.DEADLINE,
        AttemptState.PREEMPTED,
        AttemptState.REVOKED,
        AttemptState.REQUEUED,
    }
)

# Final states that mean a crash. CANCELLED is a person's will, TIMEOUT and DEADLINE the job's own limit, and a
# PREEMPTED job is requeued by Slurm itself: restarting those would fight somebody.
FAILURE_STATES = frozenset(
    {
        AttemptState.FAILED,
        AttemptState.NODE_FAIL,
        AttemptState.OUT_OF_MEMORY,
        AttemptState.BOOT_FAIL,
    }
)


class Hold(StrEnum):
    """Who holds a pending job, as Slurm tells it."""

    NONE = "none"
    REQUEUE = "requeue"  # "job requeued in held state": by requeuehold, ours or somebody's
    USER = "user"  # JobHeldUser by sbatch --hold or scontrol uhold
    ADMIN = "admin"  # JobHeldAdmin


class Mode(StrEnum):
    """What the scheduler controller may do with a job; `disabled` leaves it alone altogether."""

    DISABLED = "disabled"
    OBSERVE = "observe"
    ACT = "act"


class AnomalyKind(StrEnum):
    """The symptom that opened an incident."""

    CRASH_LOG = "crash_log"
    CRASH_STATE = "crash_state"
    NODE_FAULT = "node_fault"
    HANG = "hang"
    STRAGGLER = "straggler"


class DesiredState(StrEnum):
    """What an Advice wants of its attempt."""

    RESTARTED = "RESTARTED"
    TERMINATED = "TERMINATED"
    RELEASED = "RELEASED"


class Disposition(StrEnum):
    """Where an Advice stands (the API's AdviceReconciliationDisposition)."""

    PENDING = "PENDING"
    CONVERGED = "CONVERGED"
    ABANDONED = "ABANDONED"


class Resolution(StrEnum):
    """Why an Advice came to its end (the API's AdviceReconciliationReason; the last five are ours)."""

    UNSPECIFIED = "UNSPECIFIED"
    DESIRED_STATE_OBSERVED = "DESIRED_STATE_OBSERVED"
    ALREADY_SATISFIED = "ALREADY_SATISFIED"
    ADVICE_EXPIRED = "ADVICE_EXPIRED"
    SUPERSEDED = "SUPERSEDED"  # a newer generation for the same attempt
    ATTEMPT_SUPERSEDED = "ATTEMPT_SUPERSEDED"  # Slurm shows an attempt that this Advice did not bring about
    PROGRESS_RESUMED = "PROGRESS_RESUMED"
    JOB_LEFT_SCHEDULER = "JOB_LEFT_SCHEDULER"
    ATTEMPT_ENDED = "ATTEMPT_ENDED"  # it reached a state from which the desired one can't be reached


class Operation(StrEnum):
    """The scheduler actions there are (the API's RecoverySchedulerAction)."""

    REQUEUE_HOLD = "SLURM_REQUEUE_HOLD"
    UPDATE_CONSTRAINTS = "SLURM_UPDATE_CONSTRAINTS"
    RELEASE = "SLURM_RELEASE"
    CANCEL = "SLURM_CANCEL"


class Outcome(StrEnum):
    """How a scheduler command came back. `unknown`: its effect may still arrive."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Refusal(StrEnum):
    """Why something was considered and not done."""

    OBSERVE_MODE = "observe_mode"
    NOT_ACKNOWLEDGED = "not_acknowledged"
    ENVIRONMENT = "environment"
    PARTITION = "partition"
    APS = "aps"
    NOT_REQUEUEABLE = "not_requeueable"
    AUTO_RESUME_OFF = "auto_resume_off"
    OTHER_ATTEMPT = "other_attempt"
    UNKNOWN_STATE = "unknown_state"
    FOREIGN_HOLD = "foreign_hold"
    STALE = "stale"
    SCHEDULER_REFUSED = "scheduler_refused"
    REQUEUE_LIMIT = "requeue_limit"
    NO_NEW_CHECKPOINT = "no_new_checkpoint"
    NOT_RECOVERABLE = "not_recoverable"
    EXCLUSION_LIMIT = "exclusion_limit"
    QUARANTINED = "quarantined"
    LATE = "late"
    PROGRESS_RESUMED = "progress_resumed"
    ENDED_WELL = "ended_well"
    RECENT_OUTPUT = "recent_output"
    NO_ANSWER = "no_answer"
    RECORDED_ONLY = "recorded_only"
    OUTWEIGHED = "outweighed"


class TimerPurpose(StrEnum):
    """What a deadline is for. A job has at most one pending timer for each purpose and attempt."""

    INCIDENT_QUIET = "incident_quiet"
    CRASH_FALLBACK = "crash_fallback"
    ATTRIBUTION = "attribution"
    ADVICE_RENEWAL = "advice_renewal"
    STALL = "stall"
    STALL_ANSWER = "stall_answer"
    JOB_CLOSE = "job_close"


class Phase(StrEnum):
    """What an attempt says it is doing beside stepping; silence is normal there."""

    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    FINISHING = "finishing"


class BlindKind(StrEnum):
    """Why watch can't see what an attempt does."""

    ABSENT = "absent"  # none of its files exists where watch looks, and no source gives its lines
    DENIED = "denied"  # its output may not be read
    UNKNOWN_FORMAT = "unknown_format"  # output grows, and no line of it is known
    SOURCE_DOWN = "source_down"  # the log source that its lines come from does not answer
    LABELS = "labels"  # lines come whose labels name no attempt


class CommandKind(StrEnum):
    """What a person may ask of the decider for one attempt."""

    RESTART = "restart"
    TERMINATE = "terminate"
    RELEASE = "release"
