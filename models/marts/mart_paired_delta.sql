-- Difference between candidate and baseline at each step: as logged, relative, and measured in the noise of
-- equal runs. The noise is taken from replicates, else from the pair itself: its first steps, what it does from one
-- step to the next, or what a sample of that size must scatter.
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

precisions as (
    select
        run_id,
        metric_id,
        log_precision
    from bridge_run_metric
),

metrics as (
    select
        metric_id,
        metric,
        parity_class,
        scale,
        scale_constant
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
        metrics.parity_class,
        metrics.scale,
        metrics.scale_constant,
        pairs.is_across_stacks,
        b.scaled_value as baseline_scaled,
        c.scaled_value as candidate_scaled,
        values_equal(
            points.baseline_value,
            points.candidate_value,
            coalesce(pb.log_precision, rb.log_precision),
            coalesce(pc.log_precision, rc.log_precision)
        ) as is_same_number
    from points
    inner join pairs on points.pair_id = pairs.pair_id
    inner join metrics on points.metric_id = metrics.metric_id
    inner join runs as rb on pairs.baseline_run_id = rb.run_id
    inner join runs as rc on pairs.candidate_run_id = rc.run_id
    left join precisions as pb on pairs.baseline_run_id = pb.run_id and points.metric_id = pb.metric_id
    left join precisions as pc on pairs.candidate_run_id = pc.run_id and points.metric_id = pc.metric_id
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
        floor_steps.stack_offset as known_offset,
        floors.sigma as floor_sigma,
        coalesce(floors.baseline_runs >= 1 and floors.candidate_runs >= 1, false) as has_both_sides,
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

-- An offset that replicates of both sides show is taken off. Where they skip a step it is that of the step before;
-- behind their last step nobody knows it, and such steps are not tested.
offsets as (
    select
        *,
        case
            when not has_both_sides then 0.0
            when count(known_offset) over ahead > 0 then last_value(known_offset ignore nulls) over behind
        end as stack_offset
    from joined
    window
        ahead as (
            partition by pair_id, metric_id, step_axis
            order by step
            rows between current row and unbounded following
        ),
        behind as (
            partition by pair_id, metric_id, step_axis
            order by step
            rows between unbounded preceding and current row
        )
),

jumps as (
    select
        *,
        scaled_delta - stack_offset as adjusted_delta,
        (scaled_delta - stack_offset) - lag(scaled_delta - stack_offset) over along as jump,
        baseline_scaled - lag(baseline_scaled) over along as baseline_jump,
        candidate_scaled - lag(candidate_scaled) over along as candidate_jump
    from offsets
    window along as (
        partition by pair_id, metric_id, step_axis, scaled_delta is null
        order by step
    )
),

-- From one step to the next the pair tells its own noise, blind to wandering. The first steps tell it too, unless the
-- runs still move as one: then they are closer than what comes, and the wider of the two is taken.
own as (
    select
        pair_id,
        metric_id,
        step_axis,
        count(jump) as jump_count,
        sigma_of_jump(median(abs(jump))) as jump_sigma,
        sigma_of_jump(median(abs(jump)) filter (where jump <> 0.0)) as moved_sigma,
        first_steps_sigma(
            arg_min(adjusted_delta, step, 12) filter (where adjusted_delta is not null)
        ) as early_sigma,
        sqrt(
            pow(sigma_of_jump(median(abs(baseline_jump))), 2) + pow(sigma_of_jump(median(abs(candidate_jump))), 2)
        ) as unpaired_sigma,
        sampling_sigma(
            avg(baseline_value) filter (where baseline_kind = 'finite'),
            avg(candidate_value) filter (where candidate_kind = 'finite'),
            any_value(scale),
            any_value(scale_constant)
        ) as sampling_sigma
    from jumps
    group by pair_id, metric_id, step_axis
),

-- Runs that are equal for most of the way have no median jump: what they do once they move is their noise, and never
-- more than each run does by itself.
local_floors as (
    select
        *,
        case when jump_sigma > 0.0 then jump_sigma else least(moved_sigma, nullif(unpaired_sigma, 0.0)) end
            as local_sigma
    from own
),

-- A short window is a poor witness: its share of the local noise is shrunk to that of all metrics of the pair.
early_shares as (
    select
        pair_id,
        median(early_sigma / local_sigma) as early_share
    from local_floors
    where local_sigma > 0
    group by pair_id
),

own_floors as (
    select
        local_floors.*,
        sqrt(
            (
                8.0 * pow(early_shares.early_share * local_floors.local_sigma, 2)
                + 11.0 * pow(local_floors.early_sigma, 2)
            ) / 19.0
        ) as early_shrunk
    from local_floors
    left join early_shares on local_floors.pair_id = early_shares.pair_id
),

-- From the step on at which data that must be equal is not, the runs see different samples: what they have in common
-- no longer cancels, and each scatters by itself.
broken as (
    select
        pair_id,
        step_axis,
        min(step) as parity_step
    from joined
    where parity_class = 'exact' and not is_equal
    group by pair_id, step_axis
),

with_floors as (
    select
        jumps.*,
        own_floors.local_sigma,
        own_floors.unpaired_sigma,
        own_floors.early_shrunk,
        own_floors.sampling_sigma,
        coalesce(jumps.step >= broken.parity_step, false) as is_unpaired,
        case
            when jumps.floor_sigma > 0 then 'replicates'
            when own_floors.jump_count < 8 and own_floors.sampling_sigma > 0 then 'sampling'
            when own_floors.early_shrunk > own_floors.local_sigma then 'first_steps'
            when own_floors.local_sigma > 0 then 'local'
            when own_floors.sampling_sigma > 0 then 'sampling'
        end as floor_source
    from jumps
    left join own_floors
        on
            jumps.pair_id = own_floors.pair_id and jumps.metric_id = own_floors.metric_id
            and jumps.step_axis = own_floors.step_axis
    left join broken on jumps.pair_id = broken.pair_id and jumps.step_axis = broken.step_axis
),

-- The profile along the run counts where equal runs stay as close as the pair would: on one stack, or with
-- replicates on both sides. Two stacks part at once, so elsewhere the level of late steps holds throughout.
paired_floors as (
    select
        *,
        case floor_source
            when 'replicates'
                then case
                    when has_both_sides or not is_across_stacks
                        then sqrt(noise_at_step(local_variance, floor_sigma * floor_sigma))
                    else floor_sigma
                end
            when 'first_steps' then early_shrunk
            when 'local' then local_sigma
            when 'sampling' then sampling_sigma
        end as paired_sigma
    from with_floors
),

floored as (
    select
        *,
        case when is_unpaired then greatest(paired_sigma, unpaired_sigma) else paired_sigma end as sigma
    from paired_floors
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
    floor_source,  -- what sigma is taken from: replicates, first_steps, local or sampling; null where there is no noise
    is_unpaired,  -- data that must be equal was not, at this step or before: sigma is at least that of unpaired runs
    local_sigma,  -- noise from step to step of the pair's own difference
    baseline_kind,  -- kind of the baseline's value; null where it logged none
    candidate_kind,  -- kind of the candidate's value; null where it logged none
    adjusted_delta is not null as is_comparable  -- both finite and uncontaminated: the step takes part in the tests
from floored
