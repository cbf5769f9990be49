-- Median seconds of a stage of the step, for each side of a pair, over the steps that both logged.
-- grain: pair_id, metric_id, side
-- materialized: view
with sides as (
    select
        pair_id,
        metric_id,
        metric,
        'baseline' as side,
        baseline_value as seconds
    from mart_paired_delta
    where baseline_kind = 'finite' and candidate_kind = 'finite'
    union all
    select
        pair_id,
        metric_id,
        metric,
        'candidate' as side,
        candidate_value as seconds
    from mart_paired_delta
    where baseline_kind = 'finite' and candidate_kind = 'finite'
)

select
    sides.pair_id, -- the pair
    pairs.migration, -- its migration
    pairs.migration || ': ' || pairs.candidate_run_name || ' against ' || pairs.baseline_run_name as pair, -- its name
    sides.metric_id, -- the metric
    sides.metric, -- its name; time/step is the whole step
    sides.side, -- baseline or candidate
    percentile_cont(0.5) within group (order by sides.seconds) as median_seconds, -- median over the steps, in seconds
    count(*) as step_count -- how many steps
from sides
inner join dim_metric as metrics on sides.metric_id = metrics.metric_id
inner join dim_migration as pairs on sides.pair_id = pairs.pair_id
where metrics.category = 'time'
group by sides.pair_id, pairs.migration, pair, sides.metric_id, sides.metric, sides.side
