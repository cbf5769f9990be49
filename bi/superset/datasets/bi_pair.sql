-- A pair of runs with its verdict, the hardware of both sides, and where it drifted first.
-- grain: pair_id
-- materialized: view
with hardware as (
    select
        bridge.run_id,
        string_agg(
            component.component_name || coalesce(' ' || component.component_version, ''),
            ', ' order by component.component_name, component.component_version
        ) as hardware
    from bridge_run_component as bridge
    inner join dim_component as component on bridge.component_id = component.component_id
    where component.component_kind = 'hardware'
    group by bridge.run_id
),

first_drift as (
    select
        pair_id,
        onset_step_low,
        onset_step_high,
        cast(onset_step_low as varchar) || ' to ' || cast(onset_step_high as varchar) as onset_interval
    from mart_first_drift
    where rank = 1
)

select
    pairs.pair_id, -- the pair
    pairs.migration, -- its migration
    pairs.pair_kind, -- migration (two stacks) or replicate (one stack, nothing should differ)
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    pairs.baseline_run_name as baseline, -- the run that serves as baseline
    pairs.candidate_run_name as candidate, -- the run that is judged
    coalesce(before.hardware, 'not declared') || ' to ' || coalesce(after.hardware, 'not declared')
        as hardware, -- hardware of the baseline, and of the candidate
    verdicts.verdict, -- drift, decoupled_only, ...; see the data dictionary
    verdicts.grade, -- how sure the verdict is, A to D
    verdicts.first_stage as stage, -- stage that the first drift points to
    verdicts.first_metric as metric, -- metric that drifted first
    cast(verdicts.first_onset_step as varchar)
    || coalesce(' (' || first_drift.onset_interval || ')', '') as onset, -- step from which on it is off (interval)
    verdicts.first_onset_step as onset_step, -- step from which on it is off
    first_drift.onset_step_low, -- lower end of the interval of that step
    first_drift.onset_step_high, -- upper end of the interval of that step
    verdicts.time_verdict, -- what became of the time of a step
    verdicts.last_common_step, -- last step that both runs logged
    verdicts.reason -- the verdict in one sentence
from mart_pair_verdict as verdicts
inner join dim_migration as pairs on verdicts.pair_id = pairs.pair_id
left join hardware as before on pairs.baseline_run_id = before.run_id
left join hardware as after on pairs.candidate_run_id = after.run_id
left join first_drift on verdicts.pair_id = first_drift.pair_id
