-- The noise floor of each metric of a pair, from replicates alone: spread, autocorrelation and how much a test
-- statistic has to be deflated. A metric's own evidence is shrunk to that of its category and of all metrics.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(migration)
with pairs as (
    select
        pair_id,
        migration,
        baseline_run_id,
        candidate_run_id,
        baseline_stack,
        candidate_stack
    from dim_migration
),

steps as (
    select
        pair_id,
        metric_id,
        step_axis,
        baseline_runs,
        candidate_runs,
        equal_variance,
        variance,
        local_variance
    from int_floor_step
),

fits as (
    select * from int_replicate_fit
),

metrics as (
    select
        metric_id,
        category
    from dim_metric
),

spread as (
    select
        pair_id,
        metric_id,
        step_axis,
        quantile_cont(local_variance, 0.75) as variance,
        avg(equal_variance) / nullif(avg(variance), 0.0) as equal_share,
        max(baseline_runs) as baseline_runs,
        max(candidate_runs) as candidate_runs
    from steps
    group by pair_id, metric_id, step_axis
),

-- Replicate pairs of any stack of the migration that share no run with the pair under test: how a metric wanders
-- depends on the training more than on the stack.
witnesses as (
    select
        pairs.pair_id,
        fits.metric_id,
        fits.step_axis,
        avg(fits.autocorrelation) as autocorrelation,
        avg(fits.mean_f) as inflation,
        count(*) as replicate_pairs,
        count(distinct fits.stack) as stacks,
        count(distinct fits.left_run_id) as degrees
    from pairs
    inner join fits
        on
            pairs.migration = fits.migration
            and fits.left_run_id not in (pairs.baseline_run_id, pairs.candidate_run_id)
            and fits.right_run_id not in (pairs.baseline_run_id, pairs.candidate_run_id)
    group by pairs.pair_id, fits.metric_id, fits.step_axis
),

by_category as (
    select
        witnesses.pair_id,
        metrics.category,
        avg(witnesses.autocorrelation) as autocorrelation,
        avg(witnesses.inflation) as inflation
    from witnesses
    inner join metrics on witnesses.metric_id = metrics.metric_id
    group by witnesses.pair_id, metrics.category
),

overall as (
    select
        pair_id,
        avg(inflation) as inflation
    from witnesses
    group by pair_id
),

-- A metric's own evidence counts by its degrees of freedom, that of its category and of all metrics like four each.
shrunk as (
    select
        witnesses.pair_id,
        witnesses.metric_id,
        witnesses.step_axis,
        witnesses.replicate_pairs,
        witnesses.degrees,
        (witnesses.degrees * witnesses.autocorrelation + 4.0 * by_category.autocorrelation)
        / (witnesses.degrees + 4.0) as autocorrelation,
        (witnesses.degrees * witnesses.inflation + 4.0 * by_category.inflation + 4.0 * overall.inflation)
        / (witnesses.degrees + 8.0) as mean_f
    from witnesses
    inner join metrics on witnesses.metric_id = metrics.metric_id
    inner join by_category on witnesses.pair_id = by_category.pair_id and metrics.category = by_category.category
    inner join overall on witnesses.pair_id = overall.pair_id
)

select
    spread.pair_id,  -- the pair
    pairs.migration,  -- its migration
    spread.metric_id,  -- the metric
    spread.step_axis,  -- which counter the step counts
    spread.baseline_runs,  -- replicates of the baseline's stack, the pair's own runs left out
    spread.candidate_runs,  -- replicates of the candidate's stack, likewise; 0 where both share one stack
    sqrt(spread.variance) as sigma,  -- how far equal runs are apart once they are decoupled; null without replicates
    sqrt(spread.variance * spread.equal_share) as equal_sigma,  -- the same without the noise of the stack offset
    shrunk.autocorrelation,  -- lag-one autocorrelation of the difference of equal runs
    shrunk.mean_f,  -- mean two-segment statistic of equal runs; 1 where nothing wanders
    inflation_of_replicates(shrunk.mean_f, shrunk.autocorrelation, shrunk.degrees) as inflation,  -- divisor of F
    coalesce(shrunk.replicate_pairs, 0) as replicate_pairs,  -- pairs of equal runs behind the two
    coalesce(shrunk.degrees, 0) as effective_size  -- independent differences among them
from spread
inner join pairs on spread.pair_id = pairs.pair_id
left join shrunk
    on
        spread.pair_id = shrunk.pair_id
        and spread.metric_id = shrunk.metric_id
        and spread.step_axis = shrunk.step_axis
