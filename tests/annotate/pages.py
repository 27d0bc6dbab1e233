"""Reading a page as it was answered."""

from bs4 import BeautifulSoup


def soup(answer):
    return BeautifulSoup(answer.content, "html.parser")
