-- Points that leave the drift tests because something is known to have spoiled their step: a pack of padding
-- alone counts as 0 in the means of a step and makes its effective sample size infinite (`empty_pack`).
-- grain: run_id, metric_id, step_axis, step, cause
-- materialized: incremental(run_id)
with points as (
    select * from fct_metric
),

metrics as (
    select * from dim_metric
),

spoiled as (
    select * from dim_contamination
),

weights as (
    select
        points.run_id,
        points.step_axis,
        points.step,
        max(points.value_kind) filter (
            where metrics.metric = 'rollout_is/mismatch/rollout_is_eff_sample_size'
        ) as sample_size_kind,
        max(points.value) filter (
            where metrics.metric = 'rollout_is/mismatch/rollout_is_mean' and points.value_kind = 'finite'
        ) as mean_weight,
        max(points.value) filter (
            where metrics.metric = 'rollout_is/mismatch/rollout_is_seq_min' and points.value_kind = 'finite'
        ) as smallest_sequence_weight
    from points
    inner join metrics on points.metric_id = metrics.metric_id
    where
        points.is_current
        and metrics.metric in (
            'rollout_is/mismatch/rollout_is_eff_sample_size',
            'rollout_is/mismatch/rollout_is_mean',
            'rollout_is/mismatch/rollout_is_seq_min'
        )
    group by points.run_id, points.step_axis, points.step
),

-- All three signs are needed: a sample size that overflowed leaves the mean near 1 and the sequences whole.
empty_packs as (
    select
        run_id,
        step_axis,
        step,
        'empty_pack' as cause
    from weights
    where
        sample_size_kind in ('pos_inf', 'nan', 'nonfinite_unknown', 'rewritten_suspect')
        and mean_weight < 0.999
        and smallest_sequence_weight = 0
)

select
    empty_packs.run_id,  -- the run
    metrics.metric_id,  -- the metric that is spoiled
    empty_packs.step_axis,  -- which counter the step counts
    empty_packs.step,  -- the step
    empty_packs.cause,  -- what spoiled it
    spoiled.reason  -- how it is spoiled
from empty_packs
inner join spoiled on empty_packs.cause = spoiled.cause
inner join metrics on spoiled.metric = metrics.metric
