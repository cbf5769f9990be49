-- Difference between candidate and baseline at each step: as logged, relative, and measured in the noise of
-- equal runs.
-- grain: pair_id, metric_id, step_axis, step
-- materialized: incremental(pair_id)
with points as (
    select * from int_pair_point
),

pairs as (
    select
        pair_id,
        baseline_run_id,
        candidate_run_id,
        baseline_stack <> candidate_stack as is_across_stacks
    from dim_migration
),

runs as (
    select
        run_id,
        log_precision
    from dim_run
),

metrics as (
    select
        metric_id,
        metric
    from dim_metric
),

scaled as (
    select
        run_id,
        metric_id,
        step_axis,
        step,
        scaled_value
    from int_scaled_point
),

floors as (
    select * from int_pair_floor
),

floor_steps as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        stack_offset,
        local_variance
    from int_floor_step
),

sided as (
    select
        points.*,
        metrics.metric,
        pairs.is_across_stacks,
        b.scaled_value as baseline_scaled,
        c.scaled_value as candidate_scaled,
        values_equal(points.baseline_value, points.candidate_value, rb.log_precision, rc.log_precision)
            as is_same_number
    from points
    inner join pairs on points.pair_id = pairs.pair_id
    inner join metrics on points.metric_id = metrics.metric_id
    inner join runs as rb on pairs.baseline_run_id = rb.run_id
    inner join runs as rc on pairs.candidate_run_id = rc.run_id
    left join scaled as b
        on
            pairs.baseline_run_id = b.run_id and points.metric_id = b.metric_id
            and points.step_axis = b.step_axis and points.step = b.step
    left join scaled as c
        on
            pairs.candidate_run_id = c.run_id and points.metric_id = c.metric_id
            and points.step_axis = c.step_axis and points.step = c.step
),

joined as (
    select
        sided.*,
        case
            when sided.baseline_kind is null or sided.candidate_kind is null then null
            when sided.baseline_kind = 'finite' and sided.candidate_kind = 'finite' then sided.is_same_number
            else sided.baseline_kind = sided.candidate_kind
        end as is_equal,
        sided.candidate_scaled - sided.baseline_scaled as scaled_delta,
        coalesce(floor_steps.stack_offset, 0.0) as stack_offset,
        floors.sigma as floor_sigma,
        floors.baseline_runs >= 1 and floors.candidate_runs >= 1 as has_both_sides,
        floor_steps.local_variance
    from sided
    left join floors
        on
            sided.pair_id = floors.pair_id and sided.metric_id = floors.metric_id
            and sided.step_axis = floors.step_axis
    left join floor_steps
        on
            sided.pair_id = floor_steps.pair_id and sided.metric_id = floor_steps.metric_id
            and sided.step_axis = floor_steps.step_axis and sided.step = floor_steps.step
),

jumps as (
    select
        *,
        scaled_delta - stack_offset as adjusted_delta,
        (scaled_delta - stack_offset) - lag(scaled_delta - stack_offset) over along as jump
    from joined
    window along as (
        partition by pair_id, metric_id, step_axis, scaled_delta is null
        order by step
    )
),

-- Without replicates the noise is what the difference does from one step to the next: blind to wandering.
locals as (
    select
        *,
        median(abs(jump)) over (partition by pair_id, metric_id, step_axis) * 1.4826 / sqrt(2.0) as local_sigma
    from jumps
),

-- The profile along the run counts where equal runs stay as close as the pair would: on one stack, or with
-- replicates on both sides. Two stacks part at once, so elsewhere the level of late steps holds throughout.
floored as (
    select
        *,
        case
            when floor_sigma > 0 and (has_both_sides or not is_across_stacks)
                then sqrt(noise_at_step(local_variance, floor_sigma * floor_sigma))
            when floor_sigma > 0 then floor_sigma
            when local_sigma > 0 then local_sigma
        end as sigma
    from locals
)

select
    pair_id,  -- the pair
    migration,  -- its migration
    pair_kind,  -- migration or replicate
    metric_id,  -- the metric
    metric,  -- its canonical name
    step_axis,  -- which counter the step counts
    step,  -- the step
    baseline_value,  -- value of the baseline
    candidate_value,  -- value of the candidate
    case
        when baseline_kind = 'finite' and candidate_kind = 'finite' then candidate_value - baseline_value
    end as delta,  -- candidate minus baseline, where both are finite
    case
        when baseline_kind = 'finite' and candidate_kind = 'finite' and baseline_value <> 0
            then (candidate_value - baseline_value) / abs(baseline_value)
    end as relative_delta,  -- delta over the size of the baseline's value
    adjusted_delta / sigma as standardised_delta,  -- adjusted delta in units of sigma
    is_equal,  -- equal at the precision of the logs; null where one run did not log the step
    scaled_delta,  -- candidate minus baseline on the comparison scale
    stack_offset,  -- offset between the two stacks as their replicates show it
    adjusted_delta,  -- scaled delta less the stack offset: what is tested
    sigma,  -- noise of the adjusted delta at the step
    floor_sigma,  -- noise of decoupled equal runs, from replicates; null without them
    local_sigma,  -- noise from step to step of the pair's own difference
    baseline_kind,  -- kind of the baseline's value; null where it logged none
    candidate_kind,  -- kind of the candidate's value; null where it logged none
    adjusted_delta is not null as is_comparable  -- both finite and uncontaminated: the step takes part in the tests
from floored
