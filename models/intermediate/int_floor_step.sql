-- What the replicates of both stacks say about the difference of a pair at each step: how far equal runs are
-- apart, and how far the two stacks are apart. The two runs of the pair itself are left out.
-- grain: pair_id, metric_id, step_axis, step
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

replicates as (
    select
        run_id,
        migration,
        stack
    from dim_run
    where role in ('baseline', 'replicate')
),

points as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        scaled_value
    from int_scaled_point
),

witnesses as (
    select
        pairs.pair_id,
        pairs.migration,
        replicates.run_id,
        replicates.stack = pairs.baseline_stack as is_baseline_side,
        pairs.baseline_stack = pairs.candidate_stack as is_one_stack
    from pairs
    inner join replicates
        on
            pairs.migration = replicates.migration
            and replicates.stack in (pairs.baseline_stack, pairs.candidate_stack)
            and replicates.run_id not in (pairs.baseline_run_id, pairs.candidate_run_id)
),

by_step as (
    select
        witnesses.pair_id,
        any_value(witnesses.migration) as migration,
        bool_or(witnesses.is_one_stack) as is_one_stack,
        points.metric_id,
        points.step_axis,
        points.step,
        count(*) filter (where witnesses.is_baseline_side) as baseline_runs,
        count(*) filter (where not witnesses.is_baseline_side) as candidate_runs,
        avg(points.scaled_value) filter (where witnesses.is_baseline_side) as baseline_mean,
        avg(points.scaled_value) filter (where not witnesses.is_baseline_side) as candidate_mean,
        var_samp(points.scaled_value) filter (where witnesses.is_baseline_side) as baseline_variance,
        var_samp(points.scaled_value) filter (where not witnesses.is_baseline_side) as candidate_variance
    from witnesses
    inner join points on witnesses.run_id = points.run_id
    group by witnesses.pair_id, points.metric_id, points.step_axis, points.step
),

-- The mean of the other runs is taken off each side where both stacks have witnesses, which removes an offset
-- between the stacks that no fault made; it adds the noise of the two means.
parts as (
    select
        *,
        case
            when is_one_stack then 0.0
            when baseline_runs >= 1 and candidate_runs >= 1 then candidate_mean - baseline_mean
        end as stack_offset,
        case
            when not is_one_stack and baseline_runs >= 1 and candidate_runs >= 1
                then
                    coalesce(baseline_variance, candidate_variance) * (1.0 + 1.0 / baseline_runs)
                    + coalesce(candidate_variance, baseline_variance) * (1.0 + 1.0 / candidate_runs)
            else
                coalesce(baseline_variance, candidate_variance)
                + coalesce(candidate_variance, baseline_variance)
        end as variance,
        coalesce(baseline_variance, candidate_variance) + coalesce(candidate_variance, baseline_variance)
            as equal_variance
    from by_step
),

smoothed as (
    select
        *,
        avg(variance) over (
            partition by pair_id, metric_id, step_axis
            order by step
            rows between 7 preceding and 7 following
        ) as local_variance
    from parts
)

select
    pair_id,  -- the pair
    migration,  -- its migration
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    step,  -- the step
    baseline_runs,  -- replicates of the baseline's stack that logged the step, the pair's own runs left out
    candidate_runs,  -- replicates of the candidate's stack, likewise; 0 where both runs share one stack
    stack_offset,  -- difference between the two stacks, taken off the delta; null where it can't be known
    equal_variance,  -- variance of the difference of two equal runs; null with fewer than two replicates of any stack
    variance,  -- the same, with the noise of the stack offset that is taken off
    local_variance  -- the latter, averaged over 15 steps
from smoothed
