-- Two-segment fit of the level of each tested metric of a pair: where the level changes, if it does.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        adjusted_delta,
        delta,
        scaled_delta,
        baseline_value,
        sigma,
        floor_source,
        is_unpaired,
        greatest(sigma, coalesce(local_sigma, 0.0)) as width
    from mart_paired_delta
    where is_comparable and sigma > 0
),

floors as (
    select * from int_pair_floor
),

pairs as (
    select
        pair_id,
        baseline_stack <> candidate_stack as is_across_stacks
    from dim_migration
),

metrics as (
    select
        metric_id,
        parity_class,
        scale,
        causal_tier = 9 as is_time
    from dim_metric
),

tested as (
    select
        deltas.*,
        metrics.is_time
    from deltas
    inner join metrics on deltas.metric_id = metrics.metric_id
    where metrics.parity_class <> 'exact' and metrics.scale not in ('exact', 'constant')
),

middles as materialized (
    select
        pair_id,
        metric_id,
        step_axis,
        row_number() over () as series,
        median(adjusted_delta) as middle,
        any_value(floor_source) as floor_source,
        bool_or(is_unpaired) as is_unpaired
    from tested
    group by pair_id, metric_id, step_axis
),

-- Outliers are drawn in towards the median; sums of squares are of centred values, lest they cancel. The
-- sort by step carries a number for the series and nothing that it does not need: it is what costs time here.
centred as (
    select
        middles.series,
        tested.step,
        tested.sigma,
        drawn_in(tested.adjusted_delta - middles.middle, tested.width) as d
    from tested
    inner join middles
        on
            tested.pair_id = middles.pair_id and tested.metric_id = middles.metric_id
            and tested.step_axis = middles.step_axis
),

totals as (
    select
        series,
        count(*) as n,
        sum(1.0 / (sigma * sigma)) as weight,
        sum(d / (sigma * sigma)) as total,
        sum(d * d / (sigma * sigma)) as squares,
        max(sigma) as largest_sigma
    from centred
    group by series
),

-- A split lies before the row that it is reckoned at.
running as (
    select
        series,
        step,
        sigma,
        d,
        row_number() over along - 1 as k,
        sum(1.0 / (sigma * sigma)) over along - 1.0 / (sigma * sigma) as left_weight,
        sum(d / (sigma * sigma)) over along - d / (sigma * sigma) as left_sum,
        lag(d) over along as previous_d,
        lag(sigma) over along as previous_sigma
    from centred
    window along as (
        partition by series
        order by step
        rows unbounded preceding
    )
),

splits as (
    select
        running.series,
        running.k,
        running.step as next_step,
        running.left_weight,
        running.left_sum,
        weighted_sse(running.left_weight, running.left_sum, totals.weight, totals.total, totals.squares) as sse
    from running
    inner join totals on running.series = totals.series
    where running.k between shortest_segment(totals.n) and totals.n - shortest_segment(totals.n)
),

found as (
    select
        series,
        min(sse) as sse,
        arg_min(k, sse) as k,
        arg_min(next_step, sse) as onset_step,
        arg_min(left_sum / left_weight, sse) as left_level,
        arg_min(left_weight, sse) as left_weight
    from splits
    group by series
),

best as (
    select
        found.series,
        totals.n,
        totals.largest_sigma as sigma,
        found.k,
        found.onset_step,
        found.sse,
        totals.squares - totals.total * totals.total / totals.weight as sse_flat,
        found.left_level,
        (totals.total - found.left_level * found.left_weight) / (totals.weight - found.left_weight) as right_level
    from found
    inner join totals on found.series = totals.series
),

-- Autocorrelation of what the fit leaves over, and whether the next steps have moved.
residuals as (
    select
        running.series,
        running.k - best.k as steps_after,
        running.d - best.left_level as above_left,
        (running.d - case when running.k < best.k then best.left_level else best.right_level end)
        / running.sigma as residual,
        (running.previous_d - case when running.k <= best.k then best.left_level else best.right_level end)
        / running.previous_sigma as previous
    from running
    inner join best on running.series = best.series
),

leftover as (
    select
        series,
        sum(residual * previous) / greatest(sum(residual * residual), 0.5 * count(*)) as lag1,
        median(above_left) filter (where steps_after between 0 and 7) as median_next,
        avg(residual * residual) filter (where steps_after < 0) as left_variance
    from residuals
    group by series
),

-- What the values say on either side of the split.
sided as (
    select
        middles.series,
        tested.delta,
        tested.scaled_delta,
        tested.adjusted_delta,
        tested.baseline_value,
        tested.is_time,
        tested.step >= best.onset_step as is_after
    from tested
    inner join middles
        on
            tested.pair_id = middles.pair_id and tested.metric_id = middles.metric_id
            and tested.step_axis = middles.step_axis
    inner join best on middles.series = best.series
),

sides as (
    select
        series,
        avg(delta) filter (where is_after) - avg(delta) filter (where not is_after) as raw_effect,
        avg(scaled_delta) filter (where not is_after) as stack_level,
        avg(scaled_delta) filter (where is_after) as level_after,
        avg(abs(baseline_value)) as baseline_level,
        avg(adjusted_delta) filter (where is_after) as adjusted_after
    from sided
    group by series
),

times as (
    select
        series,
        median(scaled_delta) filter (where is_after) - median(scaled_delta) filter (where not is_after)
            as median_shift,
        median(scaled_delta) filter (where not is_after) as median_before,
        median(scaled_delta) as median_level
    from sided
    where is_time
    group by series
),

corrected as (
    select
        middles.pair_id,
        middles.metric_id,
        middles.step_axis,
        middles.floor_source,
        middles.is_unpaired,
        best.*,
        leftover.median_next,
        leftover.left_variance,
        sides.raw_effect,
        sides.adjusted_after - middles.middle - best.left_level as mean_after,
        sides.stack_level,
        sides.level_after,
        sides.baseline_level,
        times.median_shift,
        times.median_before,
        times.median_level,
        floors.sigma as floor_sigma,
        case
            when middles.is_unpaired then greatest(best.sigma, floors.equal_sigma)
            else coalesce(nullif(floors.equal_sigma, 0.0), best.sigma)
        end as gate_sigma,
        coalesce(floors.effective_size, 0) as effective_size,
        coalesce(floors.baseline_runs, 0) as baseline_runs,
        coalesce(floors.candidate_runs, 0) as candidate_runs,
        pairs.is_across_stacks,
        least(greatest(leftover.lag1 + (1.0 + 4.0 * leftover.lag1) / best.n, 0.0), 0.95) as own_autocorrelation,
        floors.autocorrelation as floor_autocorrelation,
        floors.inflation as floor_inflation
    from best
    inner join middles on best.series = middles.series
    inner join leftover on best.series = leftover.series
    inner join sides on best.series = sides.series
    left join times on best.series = times.series
    inner join pairs on middles.pair_id = pairs.pair_id
    left join floors
        on
            middles.pair_id = floors.pair_id and middles.metric_id = floors.metric_id
            and middles.step_axis = floors.step_axis
),

-- A pair that is clearly more autocorrelated than equal runs were is deflated by that much more.
deflated as (
    select
        *,
        case
            when effective_size > 0
                then
                    case
                        when is_across_stacks and candidate_runs = 0 then one_sided_inflation(floor_inflation)
                        else floor_inflation
                    end
                    * excess_inflation(own_autocorrelation, floor_autocorrelation, n)
                    * coupled_inflation(left_variance)
            else prior_inflation() * ar_inflation(own_autocorrelation)
        end as inflation,
        case
            when effective_size > 0
                then
                    interval_inflation_of_replicates(floor_inflation)
                    * excess_inflation(own_autocorrelation, floor_autocorrelation, n)
            else interval_inflation_alone(own_autocorrelation)
        end as interval_inflation
    from corrected
),

tested_f as (
    select
        *,
        (sse_flat - sse) / residual_variance(sse, n) as f
    from deflated
)

select
    pair_id,  -- the pair
    metric_id,  -- the metric
    step_axis,  -- which counter the step counts
    n,  -- steps that take part
    k,  -- steps before the change
    onset_step,  -- first step after the change
    f,  -- two-segment statistic
    inflation,  -- what the statistic is divided by before it is judged
    interval_inflation,  -- the same for the likelihood ratios of an interval
    f / inflation as statistic,  -- the statistic that is judged
    largest_f_p(f / inflation, n) as p_value,  -- its upper tail under no change
    right_level - left_level as effect,  -- change of level on the comparison scale
    raw_effect,  -- change of the mean difference in the metric's own unit
    stack_level,  -- mean difference on the comparison scale before the change
    level_after,  -- mean difference on the comparison scale after the change
    baseline_level,  -- mean size of the baseline's value
    mean_after,  -- mean after the change, less the level before
    median_shift,  -- for time: median difference after the change less that before
    median_before,  -- for time: median difference before the change
    median_level,  -- for time: median difference over all steps
    median_next,  -- median of the next eight steps, less the level before
    floor_source,  -- what the noise is taken from: replicates, first_steps, local or sampling
    is_unpaired,  -- data that must be equal was not, at some step: the noise of the later ones is that of unpaired runs
    sigma,  -- noise of one step
    floor_sigma,  -- noise of equal runs, from replicates; null without them
    gate_sigma,  -- noise in which the size of an effect is measured: of equal runs, or of one step
    sse,  -- weighted squares left over by the fit
    own_autocorrelation,  -- lag-one autocorrelation of what is left over
    floor_autocorrelation,  -- the same, of the difference of equal runs
    effective_size,  -- independent differences of equal runs behind the floor
    baseline_runs,  -- replicates of the baseline's stack
    candidate_runs,  -- replicates of the candidate's stack
    is_across_stacks  -- the pair is of two stacks
from tested_f
