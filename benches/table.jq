# The runs as Markdown: a table of medians, and which target is met. For `jq -rs`.

def median: sort | if length == 0 then null
  elif length % 2 == 1 then .[length / 2 | floor]
  else (.[length / 2] + .[length / 2 - 1]) / 2 end;
def round_to(digits): if . == null then "-" else
  pow(10; digits) as $by | (. * $by | round) / $by | tostring end;

. as $runs
| def of($case; $who): $runs | map(select(.case == $case and .who == $who));
  def typical($case; $who; field): of($case; $who) | map(field) | median;
  # The median over the rounds in which both took part.
  def ratio($case; field): [of($case; "ours")[] as $ours | of($case; "raw")[]
    | select(.round == $ours.round) | ($ours | field) / field] | median;
  def line($case; $who): (of($case; $who) | length) as $rounds | select($rounds > 0)
    | [$case, $who, $rounds,
       (typical($case; $who; .messages_per_second) | round_to(0)),
       (typical($case; $who; .cpu_us) | round_to(1)),
       (typical($case; $who; .p50_ms) | round_to(2)),
       (typical($case; $who; .p99_ms) | round_to(2)),
       (typical($case; $who; .peak_rss_kib) / 1024 | round_to(1))]
    | "| " + (map(tostring) | join(" | ")) + " |";
  def target($case; $what; $value; $sign; $limit):
    select((of($case; "ours") | length) > 0 and $value != null and $limit != null)
    | (if $sign == "≥" then $value >= $limit else $value <= $limit end) as $met
    | "| \($case): \($what) | \($value | round_to(2)) | \($sign) \($limit | round_to(2)) | \(if $met then "met" else "**missed**" end) |";
  def cpu($who; $case): typical($case; $who; .cpu_us);
  def limit(factor; extra): if . == null then null else . * factor + extra end;
  "| case | client | rounds | messages/s | CPU µs/message | p50 ms | p99 ms | peak RSS MiB |",
  "| --- | --- | --: | --: | --: | --: | --: | --: |",
  (("send", "batch", "consume", "latency") as $case | ("ours", "raw", "java") as $who | line($case; $who)),
  "",
  "| target | measured | limit | |",
  "| --- | --: | --: | --- |",
  target("send"; "messages/s of raw"; ratio("send"; .messages_per_second); "≥"; 0.9),
  target("send"; "CPU µs/message"; cpu("ours"; "send"); "≤"; cpu("raw"; "send") | limit(1.5; 0)),
  target("batch"; "messages/s of raw"; ratio("batch"; .messages_per_second); "≥"; 0.7),
  target("batch"; "CPU µs/message"; cpu("ours"; "batch"); "≤"; cpu("raw"; "batch") | limit(1; 4)),
  target("consume"; "messages/s of raw"; ratio("consume"; .messages_per_second); "≥"; 0.85),
  target("consume"; "CPU µs/message"; cpu("ours"; "consume"); "≤"; cpu("raw"; "consume") | limit(1.5; 4)),
  target("latency"; "p50 of raw"; ratio("latency"; .p50_ms); "≤"; 1.1),
  target("latency"; "p99 of raw"; ratio("latency"; .p99_ms); "≤"; 1.1),
  (("send", "batch", "consume", "latency") as $case
    | target($case; "peak RSS MiB"; [of($case; "ours")[].peak_rss_kib / 1024] | max; "≤"; 40))
