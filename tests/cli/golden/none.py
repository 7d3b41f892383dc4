print("no kernel here")
