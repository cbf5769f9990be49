-- Noise of a difference, from the little that one pair tells.

-- Standard deviation of a value from the median size of its jumps from step to step (von Neumann).
create or replace macro sigma_of_jump(median_jump) as median_jump * 1.4826 / sqrt(2.0);

-- Standard deviation from the first steps, by the median distance from their median; null below eight of them.
create or replace macro first_steps_sigma(deltas) as
case
    when len(deltas) >= 8
        then 1.4826 * list_median(list_transform(deltas, lambda x: abs(x - list_median(deltas))))
end;

-- Variance of the logit of a share of n yes-or-no samples, by the delta method; the constant of the scale is 1 / (2 n).
create or replace macro share_variance(share, constant) as
2.0 * constant / ((least(greatest(share, 0.0), 1.0) + constant) * (1.0 - least(greatest(share, 0.0), 1.0) + constant));

-- What the difference of two shares must scatter by sampling alone; null on another scale than the logit.
create or replace macro sampling_sigma(a, b, scale, constant) as
case
    when scale = 'logit'
        then sqrt(share_variance(a, coalesce(constant, 1e-3)) + share_variance(b, coalesce(constant, 1e-3)))
end;
