-- Onset and shape of each drift: a step, a ramp (a hinge fits better), a sawtooth (the excess comes and goes with a
-- fixed period) or a spike (the level comes back).
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with drifted as (
    select
        pair_id,
        metric_id,
        step_axis
    from int_drift_test
    where is_drift
),

levels as (
    select * from int_level_fit
),

deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        adjusted_delta,
        sigma,
        greatest(sigma, coalesce(local_sigma, 0.0)) as width
    from mart_paired_delta
    where is_comparable and sigma > 0
),

-- What follows is sorted by step again and again: a number for the series keeps the rows narrow.
fits as materialized (
    select
        row_number() over () as series,
        levels.*
    from drifted
    inner join levels
        on
            drifted.pair_id = levels.pair_id and drifted.metric_id = levels.metric_id
            and drifted.step_axis = levels.step_axis
),

numbered as (
    select
        fits.series,
        deltas.step,
        deltas.adjusted_delta,
        deltas.width,
        1.0 / (deltas.sigma * deltas.sigma) as w
    from fits
    inner join deltas
        on
            fits.pair_id = deltas.pair_id and fits.metric_id = deltas.metric_id
            and fits.step_axis = deltas.step_axis
),

origins as (
    select
        series,
        min(step) as first_step,
        max(step) as last_step,
        median(adjusted_delta) as middle
    from numbered
    group by series
),

centred as (
    select
        numbered.series,
        numbered.step,
        numbered.step - origins.first_step as t,
        numbered.w,
        numbered.width,
        numbered.adjusted_delta - origins.middle as excess
    from numbered
    inner join origins on numbered.series = origins.series
),

-- The step is dated on the values of the fit, with outliers drawn in hard; that would bend a ramp into a step, so
-- shapes are told on values that keep more of their size.
drawn as (
    select
        series,
        true as is_hard,
        step,
        t,
        w,
        drawn_in(excess, width) as d
    from centred
    union all by name
    select
        series,
        false as is_hard,
        step,
        t,
        w,
        drawn_in_gently(excess, width) as d
    from centred
),

totals as (
    select
        series,
        is_hard,
        count(*) as n,
        sum(w) as weight,
        sum(w * d) as total,
        sum(w * d * d) as squares,
        sum(w * t) as weight_t,
        sum(w * t * t) as weight_tt,
        sum(w * t * d) as total_t
    from drawn
    group by series, is_hard
),

running as (
    select
        series,
        is_hard,
        t,
        row_number() over along as k,
        lead(step) over (partition by series, is_hard order by step) as next_step,
        sum(w) over along as left_w,
        sum(w * d) over along as left_d,
        sum(w * t) over along as left_t,
        sum(w * t * t) over along as left_tt,
        sum(w * t * d) over along as left_td
    from drawn
    window along as (
        partition by series, is_hard
        order by step
        rows unbounded preceding
    )
),

-- Sums of x = max(0, time since the k-th step), the regressor of a hinge.
hinged as (
    select
        running.series,
        running.is_hard,
        running.next_step,
        running.left_w,
        running.left_d,
        totals.n,
        totals.weight,
        totals.total,
        totals.squares,
        totals.weight_t - running.left_t - running.t * (totals.weight - running.left_w) as sx,
        totals.weight_tt - running.left_tt - 2.0 * running.t * (totals.weight_t - running.left_t)
        + running.t * running.t * (totals.weight - running.left_w) as sxx,
        totals.total_t - running.left_td - running.t * (totals.total - running.left_d) as sxd
    from running
    inner join totals on running.series = totals.series and running.is_hard = totals.is_hard
    where running.k between shortest_segment(totals.n) and totals.n - shortest_segment(totals.n)
),

-- Squares left over by a step and by a hinge, at each split.
split_fits as (
    select
        series,
        next_step,
        n,
        case when is_hard then 'step' else 'gentle step' end as shape,
        weighted_sse(left_w, left_d, weight, total, squares) as sse
    from hinged
    union all by name
    select
        series,
        next_step,
        n,
        'ramp' as shape,
        squares - total * total / weight
        - pow(sxd - sx * total / weight, 2) / greatest(sxx - sx * sx / weight, 1e-12) as sse
    from hinged
    where not is_hard
),

best as (
    select
        series,
        shape,
        any_value(n) as n,
        min(sse) as sse,
        arg_min(next_step, sse) as onset_step
    from split_fits
    group by series, shape
),

compared as (
    select
        split_fits.series,
        split_fits.shape,
        split_fits.next_step,
        (split_fits.sse - best.sse) / (residual_variance(best.sse, best.n) * fits.interval_inflation) as lr
    from split_fits
    inner join best on split_fits.series = best.series and split_fits.shape = best.shape
    inner join fits on split_fits.series = fits.series
    where split_fits.shape <> 'gentle step'
),

intervals as (
    select
        series,
        shape,
        min(next_step) filter (where lr <= interval_limit()) as onset_step_low,
        max(next_step) filter (where lr <= interval_limit()) as onset_step_high,
        list(struct_pack(step := next_step, lr := lr) order by next_step) as profile
    from compared
    where lr <= 30.0
    group by series, shape
),

-- What the values do after the step, less their own mean: do they come back with a period?
after as (
    select
        drawn.series,
        drawn.step,
        drawn.d - avg(drawn.d) over (partition by drawn.series) as r
    from drawn
    inner join fits on drawn.series = fits.series
    where not drawn.is_hard and drawn.step >= fits.onset_step
),

lagged as (
    select
        series,
        r,
        lag(r, 1) over along as r1,
        lag(r, 2) over along as r2,
        lag(r, 3) over along as r3,
        lag(r, 4) over along as r4,
        lag(r, 5) over along as r5,
        lag(r, 6) over along as r6,
        lag(r, 8) over along as r8
    from after
    window along as (
        partition by series
        order by step
    )
),

repeating as (
    select
        series,
        count(*) as n_after,
        sum(r * r1) / nullif(sum(r * r), 0.0) as lag1,
        greatest(sum(r * r2), sum(r * r3), sum(r * r4), sum(r * r5), sum(r * r6), sum(r * r8))
        / nullif(sum(r * r), 0.0) as best_lag
    from lagged
    group by series
),

-- Levels before the step and in the last third of what follows it.
levels_around as (
    select
        centred.series,
        median(centred.excess) filter (where centred.step < fits.onset_step) as before_level,
        median(centred.excess) filter (
            where centred.step >= fits.onset_step + (2.0 / 3.0) * (origins.last_step - fits.onset_step)
        ) as last_level,
        any_value(fits.mean_after) as effect
    from centred
    inner join fits on centred.series = fits.series
    inner join origins on centred.series = origins.series
    group by centred.series
),

shaped as (
    select
        steps.series,
        case
            when repeating.n_after >= 16 and repeating.best_lag > 0.5 and repeating.best_lag > repeating.lag1 + 0.3
                then 'sawtooth'
            when (levels_around.last_level - levels_around.before_level) / levels_around.effect < 0.3 then 'spike'
            when steps.n * ln(steps.sse / greatest(ramps.sse, 1e-300)) > 6.0 then 'ramp'
            else 'step'
        end as shape
    from best as steps
    inner join best as ramps on steps.series = ramps.series and ramps.shape = 'ramp'
    inner join repeating on steps.series = repeating.series
    inner join levels_around on steps.series = levels_around.series
    where steps.shape = 'gentle step'
)

select
    fits.pair_id,  -- the pair
    fits.metric_id,  -- the metric
    fits.step_axis,  -- which counter the step counts
    shaped.shape,  -- step, ramp, sawtooth or spike
    best.onset_step,  -- first step after the change
    intervals.onset_step_low,  -- lower end of its interval
    intervals.onset_step_high,  -- upper end of its interval
    intervals.profile,  -- likelihood ratio against the best split, of every onset step that counts
    fits.statistic,  -- the statistic of the step
    fits.mean_after as effect  -- mean after the change, less the level before, on the comparison scale
from fits
inner join shaped on fits.series = shaped.series
inner join best
    on
        fits.series = best.series
        and best.shape = case when shaped.shape = 'ramp' then 'ramp' else 'step' end
inner join intervals on best.series = intervals.series and best.shape = intervals.shape
