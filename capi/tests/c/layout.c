/* Header and library mean the same bytes: sizes, and defaults found by the names of their fields. */
#include <stddef.h>
#include <string.h>

#include "check.h"

int main(void)
{
    punctual_options options;
    punctual_task task;
    punctual_cycle cycle;
    punctual_stats stats;
    punctual_wait_info info;
    punctual_unit unit;
    punctual_layout layout;
    punctual_follow_info follow;

    CHECK(sizeof options == 152 && sizeof task == 136 && sizeof cycle == 64);
    CHECK(sizeof stats == 144 && sizeof info == 112 && sizeof unit == 112);
    CHECK(sizeof layout == 40 && sizeof follow == 96);
    memset(&options, 0x55, sizeof options);
    memset(&task, 0x55, sizeof task);
    memset(&cycle, 0x55, sizeof cycle);
    memset(&stats, 0x55, sizeof stats);
    memset(&info, 0x55, sizeof info);
    memset(&unit, 0x55, sizeof unit);
    memset(&layout, 0x55, sizeof layout);
    memset(&follow, 0x55, sizeof follow);

    CHECK(punctual_options_init(&options, sizeof options) == 0);
    CHECK(options.size == sizeof options && options.period_num_ns == 0);
    CHECK(options.period_den == 1 && options.phase_ns == 0 && options.margin_ns == 0);
    CHECK(options.watchdog_ns == 0 && options.grace_ns == 0 && options.cpus == NULL);
    CHECK(options.cpu_count == 0 && options.samples == NULL && options.follow == NULL);
    CHECK(options.budget_share == 0.1 && options.late_share == 0.001);
    CHECK(options.phase == PUNCTUAL_PHASE_QUIET && options.wait == PUNCTUAL_WAIT_ADAPTIVE);
    CHECK(options.cpu == -1 && options.priority == 90 && options.lock_memory == 1);
    CHECK(options.hold_idle_states == 1 && options.learn_first == 1 && options.strict == 0);
    CHECK(options.learned == NULL && options.learned_size == 0);

    CHECK(punctual_task_init(&task, sizeof task) == 0);
    CHECK(task.size == sizeof task && task.name == NULL && task.run == NULL);
    CHECK(task.data == NULL && task.after == NULL && task.period_num_ns == 0);
    CHECK(task.period_den == 1 && task.phase_ns == 0 && task.budget_ns == 0);
    CHECK(task.deadline_ns == 0 && task.start_ns == 0 && task.priority == 0 && task.burst == 0);
    CHECK(task.phase == PUNCTUAL_PHASE_BALANCED && task.on_overrun == PUNCTUAL_OVERRUN_SKIP);
    CHECK(task.wait == NULL && task.trigger_data == NULL && task.trigger_fd == -1);
    CHECK(task.place == PUNCTUAL_PLACE_INLINE && task.place_cpu == -1 && task.place_priority == 0);

    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    CHECK(cycle.size == sizeof cycle && cycle.n == 0 && cycle.next_ns == 0 && cycle.part == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(stats.size == sizeof stats && stats.ran == 0 && stats.mean_ns == 0.0);
    CHECK(stats.stalled_ns == 0 && stats.demoted == 0 && stats.consistent == 1 && stats.forced == 0);
    CHECK(stats.censored == 0);
    /* A program of before has no `censored`, and nothing is written behind what it has. */
    memset(&stats, 0x55, sizeof stats);
    CHECK(punctual_stats_init(&stats, offsetof(punctual_stats, censored)) == 0);
    CHECK(stats.size == 136 && stats.forced == 0 && stats.censored == 0x5555555555555555);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(info.size == sizeof info && info.cpu_share == 0.0 && info.priority == 0);
    CHECK(info.hops == 0 && info.trials_late == 0 && info.quiet == 0 && info.extrapolated == 0);

    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    CHECK(unit.size == sizeof unit && unit.name == NULL && unit.of == NULL && unit.run == NULL);
    CHECK(unit.data == NULL && unit.after == NULL && unit.at_ns == 0 && unit.gap_ns == 0);
    CHECK(unit.budget_ns == 0 && unit.deadline_ns == 0 && unit.start_ns == 0);
    CHECK(unit.on_overrun == PUNCTUAL_OVERRUN_SKIP && unit.reserved == 0);
    CHECK(unit.every_ns == 0 && unit.excludes == NULL);

    CHECK(punctual_layout_init(&layout, sizeof layout) == 0);
    CHECK(layout.size == sizeof layout && layout.phase_ns == UINT64_MAX);
    CHECK(layout.rank == UINT32_MAX && layout.cpu == -1);
    CHECK(layout.response_ns == 0 && layout.deadline_ns == 0);
    CHECK(punctual_follow_info_init(&follow, sizeof follow) == 0);
    CHECK(follow.size == sizeof follow && follow.drift_ppb == 0.0 && follow.late == 0);

    CHECK(strcmp(punctual_version(), PUNCTUAL_VERSION) == 0);
    return 0;
}
