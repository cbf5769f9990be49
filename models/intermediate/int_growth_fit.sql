-- How the size of the difference grows from rounding to the noise of equal runs: on a log axis a rise and a
-- plateau, or a change of scale at one step.
-- grain: pair_id, metric_id, step_axis
-- materialized: incremental(pair_id)
with deltas as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        abs(scaled_delta) as size
    from mart_paired_delta
    where is_comparable
),

sized as (
    select
        *,
        min(case when size > 0 then size end) over (partition by pair_id, metric_id, step_axis) as smallest
    from deltas
),

logs as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        ln(greatest(size, smallest / 2.0)) as l,
        step - min(step) over (partition by pair_id, metric_id, step_axis) as t
    from sized
    where smallest is not null
),

running as (
    select
        *,
        row_number() over along as k,
        count(*) over whole as n,
        lead(step) over (partition by pair_id, metric_id, step_axis order by step) as next_step,
        sum(t) over along as left_t,
        sum(t * t) over along as left_tt,
        sum(t * l) over along as left_tl,
        sum(l) over along as left_l,
        sum(l) over whole as total,
        sum(l * l) over whole as squares
    from logs
    window
        along as (
            partition by pair_id, metric_id, step_axis
            order by step
            rows unbounded preceding
        ),
        whole as (partition by pair_id, metric_id, step_axis)
),

-- Sums of x = min(t, T), the regressor of a rise up to the k-th step and a plateau after it.
hinges as (
    select
        *,
        left_t + t * (n - k) as sx,
        left_tt + t * t * (n - k) as sxx,
        left_tl + t * (total - left_l) as sxl
    from running
),

candidates as (
    select
        pair_id,
        metric_id,
        step_axis,
        step,
        next_step,
        t,
        n,
        k,
        squares - total * total / n as sse_flat,
        (sxl - sx * total / n) / nullif(sxx - sx * sx / n, 0) as slope,
        squares - total * total / n - pow(sxl - sx * total / n, 2) / nullif(sxx - sx * sx / n, 0) as sse_rise,
        squares - left_l * left_l / k - pow(total - left_l, 2) / (n - k) as sse_scale,
        (total - left_l) / (n - k) - left_l / k as log_jump
    from hinges
    where k between 3 and n - 3
),

best as (
    select
        pair_id,
        metric_id,
        step_axis,
        any_value(n) as n,
        any_value(sse_flat) as sse_flat,
        min(sse_rise) as sse_rise,
        arg_min(step, sse_rise) as plateau_step,
        arg_min(t, sse_rise) as rise_length,
        arg_min(slope, sse_rise) as slope,
        min(sse_scale) as sse_scale,
        arg_min(next_step, sse_scale) as scale_step,
        arg_min(log_jump, sse_scale) as log_jump
    from candidates
    group by pair_id, metric_id, step_axis
),

-- Rounding differences grow, so a rise is what to expect: a change of scale has to fit clearly better.
shaped as (
    select
        *,
        case when sse_rise is null or n * ln(sse_rise / greatest(sse_scale, 1e-12)) > 6.0 then 'scale' else 'rise' end
            as shape
    from best
),

chosen as (
    select
        *,
        case when shape = 'rise' then sse_rise else sse_scale end as sse,
        case when shape = 'rise' then slope * rise_length else log_jump end as log_rise,
        case when shape = 'rise' then plateau_step else scale_step end as onset_step
    from shaped
),

interval as (
    select
        candidates.pair_id,
        candidates.metric_id,
        candidates.step_axis,
        min(case when chosen.shape = 'rise' then candidates.step else candidates.next_step end) as onset_step_low,
        max(case when chosen.shape = 'rise' then candidates.step else candidates.next_step end) as onset_step_high
    from candidates
    inner join chosen
        on
            candidates.pair_id = chosen.pair_id and candidates.metric_id = chosen.metric_id
            and candidates.step_axis = chosen.step_axis
    where
        (case when chosen.shape = 'rise' then candidates.sse_rise else candidates.sse_scale end - chosen.sse)
        <= interval_limit() * greatest(chosen.sse, 1e-12) / (chosen.n - 2)
    group by candidates.pair_id, candidates.metric_id, candidates.step_axis
)

select
    chosen.pair_id,  -- the pair
    chosen.metric_id,  -- the metric
    chosen.step_axis,  -- which counter the step counts
    chosen.n,  -- steps that take part
    chosen.shape,  -- rise (growth, then a plateau) or scale (the size of the difference jumps)
    chosen.onset_step,  -- step at which the plateau is reached
    interval.onset_step_low,  -- lower end of its interval
    interval.onset_step_high,  -- upper end of its interval
    chosen.log_rise,  -- rise of the log of the difference
    (chosen.sse_flat - chosen.sse) / greatest(chosen.sse / (chosen.n - 2), 1e-12) as f,  -- two-segment statistic
    largest_f_p(
        (chosen.sse_flat - chosen.sse) / greatest(chosen.sse / (chosen.n - 2), 1e-12) / 1.5, chosen.n
    ) as p_value,  -- its upper tail, after a factor for the excess that the log of noise was measured to have
    case
        when chosen.slope > 0 and chosen.shape = 'rise' then ln(2.0) / chosen.slope
    end as doubling_steps  -- steps in which the difference doubles, where it grows
from chosen
inner join interval
    on
        chosen.pair_id = interval.pair_id and chosen.metric_id = interval.metric_id
        and chosen.step_axis = interval.step_axis
where chosen.n >= 12
