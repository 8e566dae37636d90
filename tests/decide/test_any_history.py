"""Any facts, in any order, repeated or lost: no second Advice of one generation, no wrong attempt, no exception."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec import Codec, FixedIds
from schemas.decisions import AdviceIssued, Emitted, OutputAsked, TimerCleared
from schemas.facts import Fact, JobObserved, QuarantineLifted
from schemas.identity import AttemptId
from schemas.vocabulary import AttemptState, CommandKind, DesiredState, Hold, Mode, Operation, Phase, Refusal, Remedy
from streams.decide.decide import decide
from streams.decide.state import JobState
from tests.decide.story import OPTED_IN, Story, attempt

CODEC = Codec(FixedIds())

steps = st.one_of(
    st.tuples(
        st.just("observe"),
        st.sampled_from(list(AttemptState)),
        st.integers(0, 4),
        st.sampled_from(list(Hold)),
        st.sampled_from([(), ("node2",)]),
        st.booleans(),
    ),
    st.tuples(st.just("reuse"), st.integers(0, 3)),
    st.tuples(
        st.just("line"), st.integers(0, 4), st.sampled_from(list(Remedy)), st.sampled_from(["node1", "node9", None])
    ),
    st.tuples(
        st.just("node"),
        st.integers(0, 4),
        st.sampled_from(list(Remedy)),
        st.sampled_from(["node1", "node9"]),
        st.sampled_from([-20_000, 0, 2_000]),
    ),
    st.tuples(st.just("progress"), st.integers(0, 4), st.integers(0, 100), st.floats(0.1, 2.0)),
    st.tuples(st.just("checkpoint"), st.integers(0, 4), st.integers(0, 100)),
    st.tuples(st.just("intend"), st.integers(0, 4)),
    st.tuples(st.just("command"), st.integers(0, 4), st.sampled_from(list(CommandKind))),
    st.tuples(st.just("enter"), st.integers(0, 4), st.sampled_from(list(Phase))),
    st.tuples(st.just("loaded"), st.integers(0, 4), st.integers(0, 100)),
    st.tuples(st.just("output"), st.floats(0, 2000), st.sampled_from([None, "permission denied"])),
    st.tuples(st.just("wait"), st.floats(0, 1400)),
)


def tell(story: Story, step: tuple[object, ...]) -> None:
    match step:
        case ("observe", AttemptState() as state, int() as index, Hold() as hold, tuple() as excluded, bool() as shown):
            story.observe(state, index, hold=hold, excluded=excluded, in_controller=shown)
        case ("reuse", int() as index):
            story.submits[index] = story.now_ms // 1000 + 1
        case ("line", int() as index, Remedy() as remedy, (str() | None) as node):
            story.line(index=index, remedy=remedy, node=node)
        case ("node", int() as index, Remedy() as remedy, str() as node, int() as distance_ms):
            story.node_fault(index=index, remedy=remedy, node=node, distance_ms=distance_ms)
        case ("progress", int() as index, int() as number, float() as seconds):
            story.progress(number, index, seconds=seconds)
        case ("checkpoint", int() as index, int() as number):
            story.checkpoint(number, index)
        case ("intend", int() as index):
            story.intend(Operation.REQUEUE_HOLD, index)
        case ("command", int() as index, CommandKind() as kind):
            story.command(kind, index)
        case ("enter", int() as index, Phase() as phase):
            story.enter(phase, index)
        case ("loaded", int() as index, int() as number):
            story.loaded(number, index)
        case ("output", float() as quiet, (str() | None) as error):
            if story.events(OutputAsked):
                story.output_checked(quiet, error=error)
        case ("wait", float() as seconds):
            story.wait(seconds)
        case _:
            raise AssertionError(step)


histories = st.lists(steps, max_size=40)


def told(history: list[tuple[object, ...]]) -> Story:
    story = Story(aps=replace(OPTED_IN, max_requeue_times=9))
    story.observe(AttemptState.RUNNING)
    for step in history:
        tell(story, step)
    return story


def again(facts: list[tuple[Fact, int]], policies: Story) -> list[Emitted]:
    state: JobState | None = None
    emitted: list[Emitted] = []
    for fact, recorded_ms in facts:
        state, events = decide(state, fact, recorded_ms, {policies.policy.digest(): policies.policy})
        emitted.extend(events)
    return emitted


def check(emitted: list[Emitted]) -> None:
    issued = [event for event in emitted if isinstance(event, AdviceIssued)]
    generations = [event.advice.generation for event in issued]
    assert generations == sorted(set(generations))
    for event in issued:
        assert event.advice.attempt == event.attempt
        assert event.advice.submit_time > 0
        if event.advice.desired_state is not DesiredState.RESTARTED:
            assert event.advice.exclude_nodes == ()
        assert "node9" not in event.advice.exclude_nodes


@settings(max_examples=150, deadline=None)
@given(histories)
def test_generations_only_rise_and_advice_names_its_own_attempt(history: list[tuple[object, ...]]) -> None:
    check(told(history).emitted)


@settings(max_examples=60, deadline=None)
@given(histories)
def test_deciding_again_gives_the_same_bytes(history: list[tuple[object, ...]]) -> None:
    story = told(history)
    first, second = story.emitted, again(story.facts, story)
    assert [type(event) for event in first] == [type(event) for event in second]
    for mine, other in zip(first, second, strict=True):
        if not isinstance(mine, TimerCleared):
            assert CODEC.payload(mine) == CODEC.payload(other)


@settings(max_examples=60, deadline=None)
@given(histories, st.data())
def test_repeated_facts_conclude_nothing_new(history: list[tuple[object, ...]], data: st.DataObject) -> None:
    story = told(history)
    repeated: list[tuple[Fact, int]] = []
    known, taken = {0}, []  # what was refused, since nobody knew its attempt, may be taken when it comes again
    for i, (fact, recorded_ms) in enumerate(story.facts):
        repeated.append((fact, recorded_ms))
        if isinstance(fact, JobObserved):
            known.add(fact.restart_count)
        if isinstance(fact, JobObserved | QuarantineLifted) or fact.attempt.index in known:
            taken.append(fact)
        if i and data.draw(st.booleans()):
            repeated.append((data.draw(st.sampled_from(taken)), recorded_ms))
    issued = [e.advice for e in story.emitted if isinstance(e, AdviceIssued)]
    assert [e.advice for e in again(repeated, story) if isinstance(e, AdviceIssued)] == issued


@settings(max_examples=60, deadline=None)
@given(histories, st.data())
def test_lost_facts_never_break_the_rules(history: list[tuple[object, ...]], data: st.DataObject) -> None:
    story = told(history)
    kept = [fact for fact in story.facts if data.draw(st.integers(0, 3)) != 0]
    check(again(kept, story))


@settings(max_examples=60, deadline=None)
@given(histories, st.randoms(use_true_random=False))
def test_shuffled_facts_never_break_the_rules(history: list[tuple[object, ...]], random: object) -> None:
    story = told(history)
    facts = list(story.facts)
    random.shuffle(facts)  # type: ignore[attr-defined]
    check(again(facts, story))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.sampled_from(list(Remedy)))
def test_a_late_line_of_an_older_attempt_never_brings_advice_for_a_newer_one(newest: int, remedy: Remedy) -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    for index in range(1, newest + 1):
        story.observe(AttemptState.RUNNING, index)
    story.line(remedy=remedy)
    story.wait(120)
    assert story.advised() == []


def test_a_fact_of_an_attempt_nobody_knows_is_set_aside() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    events = story.line(of=attempt(3))
    assert [getattr(event, "reason", None) for event in events] == [Refusal.OTHER_ATTEMPT]
    other = AttemptId("local", "7", 5, 0)
    assert [getattr(event, "reason", None) for event in story.line(of=other)] == [Refusal.OTHER_ATTEMPT]


def test_mode_is_the_controllers_word_and_only_that() -> None:
    story = Story(mode=Mode.ACT)
    story.run_and_fail()
    story.wait(2)
    assert story.state is not None
    assert story.state.mode is Mode.ACT
