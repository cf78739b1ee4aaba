# SPDX-License-Identifier: Apache-2.0
# gnuplot -e "dir='...'" plot.gp: dir/start.dat and dir/rate.dat as dir/bench.svg
set terminal svg size 1000,440 font "sans-serif,12" background rgb "white"
set output dir."/bench.svg"
set multiplot layout 1,2
set style fill solid 0.85 noborder
set boxwidth 0.7
set grid ytics lc rgb "#dddddd"
set xtics nomirror
set ytics nomirror
set title "start of /bin/true (ms): median, up to the 90th percentile"
set logscale y
set yrange [0.2:*]
set xtics rotate by -35
unset key
plot dir."/start.dat" using 0:($2/1000):4:xtic(1) with boxes lc rgb variable, \
     "" using 0:($2/1000):(0):(($3-$2)/1000) with vectors nohead lc rgb "#222222"
unset logscale y
set yrange [0:*]
set title "starts a second, by how many are under way"
set key below
set style data histograms
set style histogram clustered gap 1
set xtics norotate
plot dir."/rate.dat" using 2:xtic(1) title "grade full" lc rgb 0x2f6f8f, \
     "" using 3 title "grade floor" lc rgb 0x8fb8c9, \
     "" using 4 title "bubblewrap" lc rgb 0xc98f4f
unset multiplot
