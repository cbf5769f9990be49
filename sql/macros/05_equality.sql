-- When two logged values are the same: at the coarser precision of the two logs, never within a tolerance.
create or replace macro values_equal(a, b, precision_a, precision_b) as
case
    when isnan(a) or isnan(b) then isnan(a) and isnan(b)
    when a = b then true
    when 'decimal3' in (precision_a, precision_b) then round(a, 3) = round(b, 3)
    when 'digits4' in (precision_a, precision_b) then printf('%.3e', a) = printf('%.3e', b)
    when 'float32' in (precision_a, precision_b) then coalesce(try_cast(a as float) = try_cast(b as float), false)
    else false
end;
