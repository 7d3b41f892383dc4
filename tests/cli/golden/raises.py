def main():
    raise ValueError("the script's own mistake")


main()
