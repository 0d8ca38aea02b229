"""`spark-submit`: a script that starts the bundle on any cluster manager."""
