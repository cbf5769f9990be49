-- How long each pair went without an onset: by kind of onset, and by category or over all metrics of training. A run
-- that ended early, by a crash or by values that are not finite, has a competing end; it is not simply censored.
-- grain: pair_id, metric_group, onset_kind
-- materialized: incremental(pair_id)
with pairs as (
    select
        pair_id,
        migration,
        pair_kind,
        baseline_run_id,
        candidate_run_id
    from dim_migration
),

runs as (
    select
        run_id,
        status,
        recipe
    from dim_run
),

first_drift as (
    select
        pair_id,
        metric_id,
        step_axis,
        rank
    from mart_first_drift
),

-- The least of many uncertain steps lies too early, so a drift counts from the metric that is ranked first.
onsets as (
    select
        onsets.pair_id,
        onsets.category,
        onsets.onset_kind,
        onsets.metric_id,
        onsets.step_axis,
        onsets.step_count,
        onsets.onset_step,
        onsets.onset_step_low,
        onsets.onset_step_high,
        case onsets.onset_kind when 'drift' then first_drift.rank else onsets.onset_step end as place
    from mart_divergence_onset as onsets
    left join first_drift
        on
            onsets.pair_id = first_drift.pair_id and onsets.metric_id = first_drift.metric_id
            and onsets.step_axis = first_drift.step_axis
    where onsets.causal_tier < 9 and onsets.onset_kind in ('drift', 'decouple')
),

differences as (
    select
        pair_id,
        step_axis,
        min(first_common_step) as first_step,
        max(last_common_step) as last_step
    from int_first_difference
    group by pair_id, step_axis
),

verdicts as (
    select
        pair_id,
        verdict,
        nonfinite_step
    from mart_pair_verdict
),

members as (
    select
        *,
        category as metric_group
    from onsets
    union all by name
    select
        *,
        'all' as metric_group
    from onsets
),

grouped as (
    select
        pair_id,
        metric_group,
        onset_kind,
        arg_min(
            struct_pack(
                step_axis := step_axis, step := onset_step, step_low := onset_step_low, step_high := onset_step_high
            ),
            (place, onset_step, metric_id, step_axis)
        ) filter (where place is not null and onset_step is not null) as onset,
        -- Without an onset the counter that most steps were compared on is the one that time is taken on.
        arg_max(step_axis, (step_count, step_axis)) as longest_axis
    from members
    group by pair_id, metric_group, onset_kind
),

placed as (
    select
        pair_id,
        metric_group,
        onset_kind,
        onset.step as onset_step,
        onset.step_low as onset_step_low,
        onset.step_high as onset_step_high,
        coalesce(onset.step_axis, longest_axis) as step_axis
    from grouped
),

ended as (
    select
        placed.*,
        differences.first_step,
        differences.last_step,
        verdicts.nonfinite_step,
        case
            when placed.onset_step <= coalesce(verdicts.nonfinite_step, placed.onset_step) then 'onset'
            when verdicts.verdict = 'nonfinite' then 'nonfinite'
            when runs.status = 'crashed' then 'crash'
            else 'censored'
        end as end_kind
    from placed
    inner join differences on placed.pair_id = differences.pair_id and placed.step_axis = differences.step_axis
    inner join pairs on placed.pair_id = pairs.pair_id
    inner join runs on pairs.candidate_run_id = runs.run_id
    left join verdicts on placed.pair_id = verdicts.pair_id
),

ends as (
    select
        *,
        case end_kind when 'onset' then onset_step when 'nonfinite' then nonfinite_step else last_step end as end_step
    from ended
)

select
    ends.pair_id,  -- the pair
    pairs.migration,  -- its migration
    pairs.pair_kind,  -- migration, or replicate: the arm in which nothing is wrong
    pairs.baseline_run_id,  -- its baseline; pairs that share it are dependent
    pairs.candidate_run_id,  -- the run that is judged
    coalesce(runs.recipe, '') as recipe,  -- runs are comparable within a recipe
    ends.metric_group,  -- a category, or all metrics of training
    ends.onset_kind,  -- drift or decouple
    ends.end_step - ends.first_step + 1 as duration,  -- steps from the first common one to the end, both counted
    ends.end_kind,  -- onset, crash, nonfinite or censored
    ends.end_kind = 'onset' as is_event,  -- the onset came
    ends.end_kind in ('crash', 'nonfinite') as is_competing,  -- another end came before it
    ends.onset_step_low - ends.first_step + 1 as duration_low,  -- lower end of the interval of an onset
    ends.onset_step_high - ends.first_step + 1 as duration_high  -- upper end of the interval of an onset
from ends
inner join pairs on ends.pair_id = pairs.pair_id
inner join runs on pairs.candidate_run_id = runs.run_id
