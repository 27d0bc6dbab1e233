app_name = "calibration"
urlpatterns = []
