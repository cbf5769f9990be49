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
        min(first_common_step) as first_step,
        max(last_common_step) as last_step
    from int_first_difference
    group by pair_id
),

verdicts as (
    select
        pair_id,
        verdict,
        nonfinite_step
    from mart_pair_verdict
),

grouped as (
    select
        pair_id,
        category as metric_group,
        onset_kind,
        arg_min(onset_step, place) as onset_step,
        arg_min(onset_step_low, place) as onset_step_low,
        arg_min(onset_step_high, place) as onset_step_high
    from onsets
    group by pair_id, category, onset_kind
    union all
    select
        pair_id,
        'all' as metric_group,
        onset_kind,
        arg_min(onset_step, place) as onset_step,
        arg_min(onset_step_low, place) as onset_step_low,
        arg_min(onset_step_high, place) as onset_step_high
    from onsets
    group by pair_id, onset_kind
),

ended as (
    select
        grouped.*,
        differences.first_step,
        differences.last_step,
        verdicts.nonfinite_step,
        case
            when grouped.onset_step <= coalesce(verdicts.nonfinite_step, grouped.onset_step) then 'onset'
            when verdicts.verdict = 'nonfinite' then 'nonfinite'
            when runs.status = 'crashed' then 'crash'
            else 'censored'
        end as end_kind
    from grouped
    inner join differences on grouped.pair_id = differences.pair_id
    inner join pairs on grouped.pair_id = pairs.pair_id
    inner join runs on pairs.candidate_run_id = runs.run_id
    left join verdicts on grouped.pair_id = verdicts.pair_id
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
