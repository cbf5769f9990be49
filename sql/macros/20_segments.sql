-- Arithmetic of the two-segment fit: all of it from running sums.

-- Fewest steps on either side of a split: what the last eighth of a run does can't be told from wandering.
create or replace macro shortest_segment(n) as case when n >= 24 then greatest(8, n // 8) else greatest(3, n // 4) end;

-- Squares left over by a split: weight and weighted sum of the left side, of all, and weighted squares of all.
create or replace macro weighted_sse(left_weight, left_sum, weight, total, squares) as
greatest(
    squares - left_sum * left_sum / left_weight - pow(total - left_sum, 2) / (weight - left_weight),
    1e-9 * squares + 1e-300
);

-- What a fit leaves over for each step, in units of the noise that the weights were made of. Runs that still move as
-- one leave next to nothing, which would make any difference look large once they part: half of the noise counts.
create or replace macro residual_variance(sse, n) as greatest(sse / (n - 2), 0.5);

-- The two-segment statistic of that split.
create or replace macro split_f(left_weight, left_sum, weight, total, squares, n) as
(squares - total * total / weight - weighted_sse(left_weight, left_sum, weight, total, squares))
/ residual_variance(weighted_sse(left_weight, left_sum, weight, total, squares), n);

-- Upper tail of the largest F over the possible splits of n independent values (James, James and Siegmund 1987),
-- after F has been turned into the likelihood ratio of a change of level.
create or replace macro largest_lr(f, n) as (n - 2.5) * ln(1.0 + greatest(f, 0.0) / (n - 2));

create or replace macro boundary_tail(b2, share) as
case
    when b2 < 1.5 then 1.0
    else least(
        1.0,
        sqrt(b2) * exp(-b2 / 2) / sqrt(2 * pi())
        * ((1.0 - 1.0 / b2) * 2.0 * ln((1.0 - share) / share) + 4.0 / b2)
    )
end;

create or replace macro largest_f_p(f, n) as boundary_tail(largest_lr(f, n), shortest_segment(n) * 1.0 / n);

-- Limit of the largest F at 1% for one series of n independent values (Monte Carlo, shortest segment as above).
create or replace macro largest_f_limit(n) as 13.0 + 45.0 / greatest(n - 2, 1);
