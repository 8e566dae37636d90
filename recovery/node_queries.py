"""Prometheus queries about nodes: how one is set, and those that are asked unless others are given."""

from collections import defaultdict
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from schemas.vocabulary import FaultClass, LineRole, Remedy


def _template(value: str) -> str:
    try:
        value.format_map(defaultdict(str))
    except (ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"must be words with {{value}} and {{label}} in them: {error}") from error
    return value


class NodeQuery(BaseModel):
    """A Prometheus query that says of nodes that something is wrong with them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9-]{1,60}$", description="What the fault is called, as metric:<name>.")
    query: str = Field(
        min_length=1,
        description="PromQL that gives one value a series, 0 where nothing is wrong: a series that is missing for less"
        " than an hour counts as not scraped, and as unchanged if it stands where it stood.",
    )
    when: Literal["above", "grows", "changes"] = Field(
        default="above", description="Which edge counts: from below the limit to above it, growth by more, a change."
    )
    limit: float = Field(default=0, description="The limit; of growth since the last look.")
    node_label: str = Field(default="instance", min_length=1, description="The label that names the node.")
    fault_class: FaultClass = Field(description="What kind of thing failed.")
    remedy: Literal[Remedy.RESTART, Remedy.RESTART_EXCLUDING_NODE] = Field(
        default=Remedy.RESTART,
        description="restart_excluding_node: alone it is reason enough to act, as a line of job output is.",
    )
    role: LineRole = Field(default=LineRole.CAUSE, description="cause, or consequence of something else.")
    precedence: int = Field(default=80, ge=0, le=100, description="Of several causes, the higher explains the lower.")
    detail: Annotated[str, AfterValidator(_template)] = Field(
        min_length=1, description="In words; {value} and {label} are filled in."
    )


def _dcgm(name: str, query: str, fault_class: FaultClass, detail: str, **more: object) -> NodeQuery:
    return NodeQuery.model_validate(
        {"name": name, "query": query, "fault_class": fault_class, "detail": detail, "node_label": "Hostname"} | more
    )


def _or_zero(wrong: str, metric: str) -> str:
    """What is wrong, and 0 for all other series of the metric: one that is missing was not scraped."""
    return f"({wrong}) * 1 or {metric} * 0"


def _xids(*xids: int) -> str:
    metric = "DCGM_FI_DEV_XID_ERRORS"
    return _or_zero(" or ".join(f"{metric} == {xid}" for xid in xids), metric)


# By the names of NVIDIA's DCGM exporter and Prometheus' node exporter. What depends on the program is left out.
NODE_QUERIES = (
    _dcgm(
        "xid-hardware",
        _xids(62, 79, 109, 119, 120),
        FaultClass.GPU_HARDWARE,
        "Xid {value} on GPU {gpu}",
        when="changes",
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        precedence=94,
    ),
    _dcgm(
        "xid-ecc",
        _xids(48, 64, 94, 95),
        FaultClass.GPU_MEMORY_ECC,
        "Xid {value} on GPU {gpu}: uncorrectable memory error",
        when="changes",
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        precedence=96,
    ),
    _dcgm(
        "ecc-uncorrectable",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        FaultClass.GPU_MEMORY_ECC,
        "{value} uncorrectable memory errors on GPU {gpu}",
        when="grows",
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        precedence=95,
    ),
    _dcgm(
        "nvlink-recovery",
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        FaultClass.NVLINK,
        "an NVLink of GPU {gpu} had to recover",
        when="grows",
        role=LineRole.CONSEQUENCE,
        precedence=40,
    ),
    _dcgm(
        "slow-clock",
        _or_zero("DCGM_FI_DEV_SM_CLOCK < 600 and on(Hostname, gpu) DCGM_FI_DEV_GPU_UTIL > 90", "DCGM_FI_DEV_SM_CLOCK"),
        FaultClass.STRAGGLER,
        "GPU {gpu} is busy at {value} MHz only",
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        role=LineRole.CONSEQUENCE,
        precedence=50,
    ),
    _dcgm(
        "infiniband-down",
        "node_infiniband_link_downed_total",
        FaultClass.NETWORK_IB,
        "InfiniBand link {device} port {port} went down",
        when="grows",
        node_label="instance",
        precedence=70,
    ),
)
