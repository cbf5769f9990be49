-- Which phases of a step became slower after the migration, and how much of the step is that?
-- param metric: the metric of a whole step = time/step
-- values metric: select metric from mart_divergence_onset where category = 'time'
-- test: count(*) filter (where metric = 'time/step') = 2
-- test: bool_and(ratio between 1.0 and 1.5) filter (where metric = 'time/step')
-- test: bool_and(share_of_step <= 1.001)
with medians as (
    select
        deltas.pair_id,
        deltas.metric,
        count(*) as steps,
        median(deltas.baseline_value) as baseline_median,
        median(deltas.candidate_value) as candidate_median
    from mart_paired_delta as deltas
    inner join dim_metric as metrics on deltas.metric_id = metrics.metric_id
    where metrics.category = 'time' and deltas.pair_kind = 'migration' and deltas.delta is not null
    group by deltas.pair_id, deltas.metric
),

whole as (
    select
        pair_id,
        candidate_median
    from medians
    where metric = $metric
)

select
    pairs.migration,
    pairs.candidate_run_name as candidate,
    medians.metric,
    medians.steps,
    medians.baseline_median,
    medians.candidate_median,
    medians.candidate_median / nullif(medians.baseline_median, 0) as ratio,
    medians.candidate_median / nullif(whole.candidate_median, 0) as share_of_step
from medians
inner join whole on medians.pair_id = whole.pair_id
inner join dim_migration as pairs on medians.pair_id = pairs.pair_id
where medians.candidate_median <= whole.candidate_median
order by pairs.migration asc, candidate asc, medians.candidate_median - medians.baseline_median desc
