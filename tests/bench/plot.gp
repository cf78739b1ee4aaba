# SPDX-License-Identifier: Apache-2.0
# gnuplot -e "dir='...'" plot.gp: dir/start.dat and dir/rate.dat as dir/bench.svg
set terminal svg size 1000,420 font "sans-serif,12" background rgb "white"
set output dir."/bench.svg"
set multiplot layout 1,2
set style fill solid 0.8 noborder
set boxwidth 0.7
set grid ytics lc rgb "#dddddd"
set title "start of /bin/true: median, up to the 90th percentile (µs)"
set logscale y
set xtics rotate by -35
unset key
plot dir."/start.dat" using 0:2:xtic(1) with boxes lc rgb "#2f6f8f", \
     "" using 0:2:2:3 with yerrorbars pt 0 lc rgb "#222222"
unset logscale y
set title "sustained starts a second, by how many are under way"
set key top left
set style data histograms
set style histogram clustered gap 1
set xtics norotate
plot dir."/rate.dat" using 2:xtic(1) title "grade full" lc rgb "#2f6f8f", \
     "" using 3 title "grade floor" lc rgb "#8fb8c9", \
     "" using 4 title "bubblewrap" lc rgb "#c98f4f"
unset multiplot
