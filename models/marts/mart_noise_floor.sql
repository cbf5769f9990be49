-- How far equal runs are apart, by metric and replicate group of a migration, and from what evidence. The floor of a
-- single pair leaves out the two runs that are judged: see int_pair_floor.
-- grain: migration, stack, metric_id, step_axis
-- materialized: table
with fits as (
    select * from int_replicate_fit
),

metrics as (
    select
        metric_id,
        metric,
        category,
        scale
    from dim_metric
),

pooled as (
    select
        migration,
        stack,
        metric_id,
        step_axis,
        count(*) as replicate_pairs,
        count(distinct left_run_id) as effective_size,
        max(n) as step_count,
        sqrt(avg(mean_square)) as spread,
        sqrt(avg(plateau)) as sigma,
        avg(autocorrelation) as autocorrelation,
        avg(mean_f) as inflation
    from fits
    group by migration, stack, metric_id, step_axis
)

select
    pooled.migration,  -- the migration
    pooled.stack,  -- replicate group
    pooled.metric_id,  -- the metric
    metrics.metric,  -- its canonical name
    metrics.category,  -- its category
    metrics.scale,  -- the scale on which the numbers are
    pooled.step_axis,  -- which counter the step counts
    'replicates' as source,  -- what the floor was taken from
    pooled.replicate_pairs,  -- pairs of equal runs
    pooled.effective_size,  -- independent differences among them
    pooled.step_count,  -- steps of the longest pair
    pooled.spread,  -- root mean square difference over all steps
    pooled.sigma,  -- the same on the plateau, once equal runs are decoupled
    pooled.autocorrelation,  -- of the difference, at lag one
    pooled.inflation  -- mean two-segment statistic: 1 where nothing wanders
from pooled
inner join metrics on pooled.metric_id = metrics.metric_id
