"""A hang is told from a save, an evaluation, a slow start and a chatty pause; when in doubt nothing is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from schemas.decisions import AdviceWithheld, AnomalyDetected, OutputAsked
from schemas.facts import BlindReported
from schemas.identity import Position, derived_id
from schemas.policy import DEFAULT_POLICY, Policy
from schemas.vocabulary import AnomalyKind, AttemptState, BlindKind, FaultClass, Phase, Refusal
from streams.decide.stall import FINISHING_FACTOR, LEAST_LEARNED_S
from tests.decide.story import OPTED_IN, Story, attempt

BUDGET_S = OPTED_IN.log_based_timeout_threshold_trainingloop
FAST = replace(OPTED_IN, progress_interval_s=2)


def running(policy: Policy = DEFAULT_POLICY, steps: int = 1, every_s: float = 60, **aps: object) -> Story:
    story = Story(policy=policy, aps=replace(OPTED_IN, **aps))  # type: ignore[arg-type]
    story.observe(AttemptState.RUNNING)
    for step in range(steps):
        story.progress(step)
        if step < steps - 1:
            story.wait(every_s)
    return story


def refusals(story: Story) -> list[Refusal]:
    return [event.reason for event in story.events(AdviceWithheld)]


def test_silence_before_the_first_marker_is_never_a_hang() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.wait(100_000)
    assert story.events(OutputAsked) == []


def test_a_silent_attempt_is_asked_about_when_its_budget_is_spent_and_not_before() -> None:
    story = running()
    story.wait(BUDGET_S - 1)
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1
    assert story.advised() == []


def test_silence_that_watch_confirms_is_a_hang_and_restarts_without_exclusion() -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    story.output_checked(BUDGET_S)
    assert [a.kind for a in story.events(AnomalyDetected)] == [AnomalyKind.HANG]
    assert story.advised() == [(0, "RESTARTED", ())]
    advice = story.open_advice()[0]
    assert advice.reason == FaultClass.HANG_NO_LOG
    assert advice.valid_until_ms is not None


def test_advice_for_a_hang_is_withdrawn_when_a_step_comes_after_all() -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    story.output_checked(BUDGET_S)
    story.progress(2)
    assert story.resolved() == [(0, "ABANDONED", "PROGRESS_RESUMED")]


def test_recent_output_suppresses_it_for_a_while_but_not_for_ever() -> None:
    story = running()
    for _ in range(DEFAULT_POLICY.stall_patience):
        assert story.advised() == []
        story.wait(BUDGET_S + 2)
        story.output_checked(3)
    assert refusals(story)[0] is Refusal.RECENT_OUTPUT
    assert story.advised() == [(0, "RESTARTED", ())]


def answered(story: Story, seconds: float, quiet_s: float) -> None:
    """So long no step comes, and each question is answered: the last output came `quiet_s` ago."""
    end_ms, seen = story.now_ms + int(seconds * 1000), len(story.events(OutputAsked))
    while story.now_ms < end_ms:
        story.wait(1)
        for asked in story.events(OutputAsked)[seen:]:
            story.output_checked(quiet_s, asked=asked)
            seen += 1


def test_growing_output_has_several_of_the_configured_thresholds_whatever_was_learned() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    answered(story, DEFAULT_POLICY.stall_patience * BUDGET_S - 5, quiet_s=5)
    assert len(story.events(OutputAsked)) > DEFAULT_POLICY.stall_patience
    assert story.advised() == []
    answered(story, 2 * LEAST_LEARNED_S, quiet_s=5)
    assert story.advised() == [(0, "RESTARTED", ())]


def test_output_that_comes_rarely_is_no_silence() -> None:
    story = running()
    answered(story, BUDGET_S + 5, quiet_s=100)
    assert refusals(story) == [Refusal.RECENT_OUTPUT]
    assert story.advised() == []


def test_output_just_after_the_last_step_that_was_kept_does_not_make_a_hang_wait_for_another_budget() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    answered(story, LEAST_LEARNED_S + 1, quiet_s=LEAST_LEARNED_S - 2)
    assert story.advised() == [(0, "RESTARTED", ())]


def blind(story: Story, *kinds: BlindKind) -> None:
    story.offset += 1
    kind = BlindKind.UNKNOWN_FORMAT
    position = Position(f"blind:{kind}", story.offset, int(not kinds))
    event_id = derived_id(position.source, position.epoch)
    story.take(BlindReported(event_id, "", attempt(), position, kind, not kinds, "", "", kinds, 0, story.now_ms))


def test_while_watch_does_not_know_the_format_growing_output_is_no_hang_and_silence_is() -> None:
    story = running()
    blind(story, BlindKind.UNKNOWN_FORMAT)
    answered(story, 10 * BUDGET_S, quiet_s=5)
    assert refusals(story) == [Refusal.UNKNOWN_STATE]
    assert story.advised() == []
    answered(story, BUDGET_S + 5, quiet_s=BUDGET_S)
    assert story.advised()[0] == (0, "RESTARTED", ())


def test_once_watch_sees_again_growing_output_is_a_hang() -> None:
    story = running()
    blind(story, BlindKind.UNKNOWN_FORMAT)
    blind(story)
    answered(story, DEFAULT_POLICY.stall_patience * BUDGET_S + 60, quiet_s=5)
    assert story.advised()[0] == (0, "RESTARTED", ())


def test_no_answer_in_time_is_no_action_and_is_recorded() -> None:
    story = running()
    story.wait(BUDGET_S + DEFAULT_POLICY.stall_answer_s + 5)
    assert story.advised() == []
    assert refusals(story) == [Refusal.NO_ANSWER]
    late = story.events(OutputAsked)[0]
    story.output_checked(BUDGET_S, asked=late)
    assert story.advised() == []


def test_what_cannot_be_seen_is_no_action() -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    story.output_checked(0, error="/logs/train.out: permission denied")
    assert story.advised() == []
    assert refusals(story) == [Refusal.UNKNOWN_STATE]


def test_the_budget_is_learned_from_the_attempts_own_steps_and_never_above_the_configured() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.wait(LEAST_LEARNED_S - 1)
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1
    often = running(steps=10, every_s=20, progress_interval_s=2)
    often.wait(199)
    assert often.events(OutputAsked) == []
    often.wait(2)
    assert len(often.events(OutputAsked)) == 1
    short = running(steps=10, every_s=2, progress_interval_s=2, log_based_timeout_threshold_trainingloop=10)
    short.wait(11)
    assert len(short.events(OutputAsked)) == 1
    slow = running(steps=10, every_s=700)
    slow.wait(BUDGET_S + 1)
    assert len(slow.events(OutputAsked)) == 1


def test_a_learned_budget_is_never_under_four_progress_intervals() -> None:
    story = running(steps=10, every_s=31, progress_interval_s=60)
    story.wait(239)
    assert story.events(OutputAsked) == []


@pytest.mark.parametrize("stamped", [True, False], ids=["the lines say when", "lines without a time"])
def test_steps_that_are_read_in_one_go_do_not_teach_a_short_budget(*, stamped: bool) -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    printed_ms, story.now_ms = story.now_ms, story.now_ms + 6_000_000
    for step in range(20):
        story.progress(step, line_ms=printed_ms + 300_000 * step if stamped else None)
    story.wait(BUDGET_S - 5)
    assert story.events(OutputAsked) == []


def test_lines_of_the_future_do_not_teach_a_budget_and_arrival_does() -> None:
    story = running()
    for step in range(1, 10):
        story.wait(60)
        story.progress(step, line_ms=story.now_ms + 1_000_000 + 300_000 * step)
    story.wait(BUDGET_S - 5)
    assert story.events(OutputAsked) != []


@pytest.mark.parametrize("phase", [Phase.CHECKPOINT, Phase.EVALUATION])
def test_a_save_or_an_evaluation_may_be_silent_for_the_whole_configured_budget(phase: Phase) -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.enter(phase)
    story.wait(BUDGET_S - 5)
    assert story.events(OutputAsked) == []
    story.wait(10)
    assert len(story.events(OutputAsked)) == 1


FINISHING_S = FINISHING_FACTOR * OPTED_IN.log_based_timeout_threshold_pretraining


def test_after_the_end_of_training_an_attempt_may_be_silent_for_long_and_not_all_night() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.enter(Phase.FINISHING)
    story.wait(FINISHING_S - 5)
    assert story.events(OutputAsked) == []
    story.wait(10)
    story.output_checked(FINISHING_S)
    assert story.advised() == [(0, "RESTARTED", ())]


def test_after_the_end_of_training_output_without_steps_is_no_hang() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.enter(Phase.FINISHING)
    answered(story, 10 * FINISHING_S, quiet_s=60)
    assert refusals(story) == [Refusal.RECENT_OUTPUT]
    assert story.advised() == []


@pytest.mark.parametrize("phase", list(Phase))
def test_two_steps_take_a_phase_back_and_one_that_may_be_printed_late_does_not(phase: Phase) -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.enter(phase)
    story.progress(10)
    story.wait(BUDGET_S - 5)
    assert story.events(OutputAsked) == []
    again = running(steps=10, every_s=2, progress_interval_s=2)
    again.enter(phase)
    again.progress(10)
    again.wait(2)
    again.progress(11)
    again.wait(LEAST_LEARNED_S + 1)
    assert len(again.events(OutputAsked)) == 1


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("quiet_s", [1, BUDGET_S])
def test_an_answer_to_a_question_from_before_a_phase_does_not_count(phase: Phase, quiet_s: int) -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    asked = story.events(OutputAsked)[0]
    story.enter(phase)
    story.output_checked(quiet_s, asked=asked)
    story.wait(BUDGET_S - 5)
    assert story.advised() == []
    assert len(story.events(OutputAsked)) == 1
    assert refusals(story) == [], "nor does it wait for one"
    story.wait(FINISHING_S)
    assert len(story.events(OutputAsked)) > 1


@pytest.mark.parametrize("sign", ["saved", "loaded"])
def test_an_answer_to_a_question_from_before_a_sign_of_life_does_not_count(sign: str) -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    asked = story.events(OutputAsked)[0]
    (story.checkpoint if sign == "saved" else story.loaded)(1)
    story.output_checked(BUDGET_S, asked=asked)
    assert story.advised() == []


def test_a_loaded_checkpoint_arms_with_the_threshold_before_the_training_loop() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.loaded(100)
    story.wait(OPTED_IN.log_based_timeout_threshold_pretraining - 1)
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1


def test_a_program_that_loads_again_has_the_threshold_before_the_training_loop_again() -> None:
    story = running(steps=10, every_s=2, progress_interval_s=2)
    story.loaded(9)
    story.wait(OPTED_IN.log_based_timeout_threshold_pretraining - 1)
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1


def test_a_job_may_turn_it_off() -> None:
    story = running(log_based_timeout_enabled=False)
    story.wait(100_000)
    assert story.events(OutputAsked) == []


def test_the_same_step_printed_again_is_no_progress() -> None:
    story = running()
    for _ in range(20):
        story.wait(60)
        story.progress(0)
    assert len(story.events(OutputAsked)) >= 1


def stepping(steps: Iterable[int], every_s: float = 100) -> Story:
    story = running(steps=11)
    for step in steps:
        story.wait(every_s)
        story.progress(step)
    return story


def test_ranks_that_stand_still_at_two_steps_and_print_in_turn_do_not_move() -> None:
    story = stepping([11, 10] * 10)
    assert story.events(OutputAsked) != []
    answered(story, DEFAULT_POLICY.stall_patience * BUDGET_S, quiet_s=5)
    assert story.advised()[0] == (0, "RESTARTED", ())
    story.progress(11)
    story.progress(10)
    assert "PROGRESS_RESUMED" not in {resolution for _, _, resolution in story.resolved()}
    story.progress(12)
    assert story.resolved()[-1] == (0, "ABANDONED", "PROGRESS_RESUMED")


@pytest.mark.parametrize(
    "steps",
    [
        [0, 50, 100] * 10,
        [0, 1] * 10,
        [100, 90, 91, 92, 93, 94, 95, 90, 91, 92, 93, 94, 95, 96],
        [100, 90, 110, 120, 110, 130, 140, 130, 150, 160],
        [400, 300, 200, 100, 50, 20, 10, 5, 2, 1, 0],
    ],
    ids=["epochs", "short epochs", "rolled back twice", "ranks apart", "kept a little earlier in each epoch"],
)
def test_a_count_that_falls_and_rises_moves(steps: list[int]) -> None:
    assert stepping(steps, every_s=290).events(OutputAsked) == []


def test_after_a_load_the_count_begins_anew() -> None:
    story = stepping([11, 12])
    story.loaded(12)
    for _ in range(3):
        story.wait(400)
        story.progress(12)
    assert story.events(OutputAsked) == []


def test_nothing_is_asked_of_an_attempt_that_ended_or_is_suspended() -> None:
    for state in (AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.SUSPENDED):
        story = running()
        story.observe(state)
        story.wait(3 * BUDGET_S)
        assert story.events(OutputAsked) == []


@pytest.mark.parametrize("silent_s", [0, 300, 599])
def test_the_silence_of_a_suspended_attempt_is_not_its_own(silent_s: int) -> None:
    story = running(steps=10, every_s=60)
    story.wait(silent_s)
    story.observe(AttemptState.SUSPENDED)
    story.wait(3_600)
    story.observe(AttemptState.RUNNING)
    story.wait(599)  # ten of its gaps
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1


def test_a_suspension_is_no_gap_between_steps() -> None:
    story = running(steps=10, every_s=60)
    story.observe(AttemptState.SUSPENDED)
    story.wait(3_600)
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.wait(601)
    assert len(story.events(OutputAsked)) == 1


def test_an_answer_to_a_question_from_before_a_suspension_does_not_count() -> None:
    story = running()
    story.wait(BUDGET_S + 1)
    story.observe(AttemptState.SUSPENDED)
    story.output_checked(BUDGET_S)
    assert story.advised() == []
    story.observe(AttemptState.RUNNING)
    story.output_checked(BUDGET_S)
    assert story.advised() == []


def test_a_hang_after_a_crash_line_is_left_to_the_incident() -> None:
    story = running()
    story.line()
    story.wait(400)
    assert [a.kind for a in story.events(AnomalyDetected)] == [AnomalyKind.CRASH_LOG]
    assert next(state for _, state, _ in story.advised()) == "RESTARTED"
    assert story.events(OutputAsked) == []


def test_a_completed_save_is_a_sign_of_life() -> None:
    story = running(steps=10, every_s=60)
    story.enter(Phase.CHECKPOINT)
    story.wait(BUDGET_S - 5)
    story.checkpoint(9)
    story.wait(599)  # ten of its gaps
    assert story.events(OutputAsked) == []
    story.wait(2)
    assert len(story.events(OutputAsked)) == 1


def test_a_save_that_nobody_announced_is_a_sign_of_life_too() -> None:
    story = running()
    story.wait(BUDGET_S - 5)
    story.checkpoint(0)
    story.wait(BUDGET_S - 5)
    assert story.events(OutputAsked) == []


def test_saves_between_the_steps_that_are_kept_do_not_hide_the_rhythm() -> None:
    story = running(steps=1, progress_interval_s=2)
    for step in range(1, 10):
        story.enter(Phase.CHECKPOINT)
        story.checkpoint(step)
        story.wait(2)
        story.progress(step)
    story.enter(Phase.CHECKPOINT)
    story.checkpoint(10)
    story.wait(LEAST_LEARNED_S + 1)
    assert len(story.events(OutputAsked)) == 1
