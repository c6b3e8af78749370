"""What WhatsApp writes itself, in six languages."""

import pytest

from stream.platforms.whatsapp_words import attachment, is_nobodys, left_out, unedited, unmarked
from tracker.records import Modality

LRM = "\u200e"


@pytest.mark.parametrize(
    "text",
    [
        "This message was deleted", "You deleted this message", "This message was deleted by admin Ines",
        "Se eliminó este mensaje.", "Eliminaste este mensaje.",
        "此消息已删除。", "你已刪除此訊息。",
        "Mensagem apagada", "Essa mensagem foi apagada", "Esta mensagem foi eliminada",
        "Diese Nachricht wurde gelöscht.", "Du hast diese Nachricht gelöscht.",
        "Ce message a été supprimé", "Vous avez supprimé ce message",
        f"{LRM}This message was deleted.", "Missed voice call", "Videollamada perdida", "Appel vocal manqué",
        "Waiting for this message. This may take a while.", "null",
        "Messages and calls are end-to-end encrypted. Tap to learn more.",
    ],
)  # fmt: skip
def test_rows_that_nobody_wrote(text: str) -> None:
    assert is_nobodys("Ines", text)


@pytest.mark.parametrize(
    "text",
    [
        "I think this message was deleted",
        "This message was deleted and I saw it",
        "missed voice call from you?",
        "nullify",
    ],
)
def test_who_writes_of_them_is_somebody(text: str) -> None:
    assert not is_nobodys("Ines", text)


@pytest.mark.parametrize(
    "speaker",
    [
        'Ines created group "Quay', 'Ines changed the subject from "a" to "Quay',
        "Ines changed the group name to “Quay", 'Inés creó el grupo "Muelle', 'Creaste el grupo "Muelle',
        'Inês criou o grupo "Cais', 'Ines hat die Gruppe "Kai', 'Inès a créé le groupe "Quai',
        'Vous avez créé le groupe "Quai', "小林创建了群组“码头", "小林建立了群組「碼頭",
    ],
)  # fmt: skip
def test_rows_whose_own_words_hold_a_colon(speaker: str) -> None:
    assert is_nobodys(speaker, 'open"')
    assert not is_nobodys("Ines", "I created group chats: many")


@pytest.mark.parametrize(
    "mark",
    [
        "<This message was edited>", f"{LRM}<This message was edited>", "<Se editó este mensaje.>",
        "<此消息已编辑>", "<Mensagem editada>",
        "<Diese Nachricht wurde bearbeitet>", "<Ce message a été modifié>",
    ],
)  # fmt: skip
def test_the_mark_of_an_edit_is_taken_away(mark: str) -> None:
    assert unedited(f"yes {mark}") == "yes"
    assert unedited(f"{mark} is what it says") == f"{mark} is what it says"


def test_long_space_is_no_work() -> None:
    assert unedited(" " * 1_000_000) == " " * 1_000_000


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<Media omitted>", None), ("<Multimedia omitido>", None), ("<省略多媒体文件>", None),
        ("<Mídia oculta>", None), ("<Medien ausgeschlossen>", None), ("<Médias omis>", None),
        (f"{LRM}document omitted", None),
        (f"{LRM}image omitted", Modality.IMAGE), (f"{LRM}imagen omitida", Modality.IMAGE),
        ("图像已忽略", Modality.IMAGE),
        (f"{LRM}imagem ocultada", Modality.IMAGE), (f"{LRM}Bild weggelassen", Modality.IMAGE),
        (f"{LRM}image absente", Modality.IMAGE), (f"{LRM}GIF omitted", Modality.VIDEO),
        (f"{LRM}vidéo absente", Modality.VIDEO), (f"{LRM}audio omitido", Modality.AUDIO),
        (f"{LRM}Audio weggelassen", Modality.AUDIO), (f"{LRM}figurinha omitida", Modality.MEME),
        (f"{LRM}sticker omitted", Modality.MEME),
    ],
)  # fmt: skip
def test_media_that_was_left_out(text: str, kind: Modality | None) -> None:
    assert left_out(text) == (kind, "")


def test_words_beside_what_was_left_out() -> None:
    assert left_out("<Media omitted>\nthe queue") == (None, "the queue")
    assert left_out(f"the queue {LRM}image omitted") == (Modality.IMAGE, "the queue ")
    assert left_out("an image omitted") is None


@pytest.mark.parametrize(
    ("text", "name", "kind", "words"),
    [
        (f"{LRM}<attached: 0001-PHOTO-2026.jpg>", "0001-PHOTO-2026.jpg", Modality.IMAGE, ""),
        ("the queue <adjunto: 1.mp4>", "1.mp4", Modality.VIDEO, "the queue "),
        ("<附件：1.webp>", "1.webp", Modality.MEME, ""),
        ("<Anhang: 1.opus>", "1.opus", Modality.AUDIO, ""),
        ("<pièce jointe : 1.pdf>", "1.pdf", None, ""),
        ("IMG-2026-WA1.jpg (file attached)\nthe queue", "IMG-2026-WA1.jpg", Modality.IMAGE, "\nthe queue"),
        (f"{LRM}IMG-1.jpg (archivo adjunto)", "IMG-1.jpg", Modality.IMAGE, ""),
        ("PTT-1.opus (arquivo anexado)", "PTT-1.opus", Modality.AUDIO, ""),
        ("a b.pdf (Datei angehängt)", "a b.pdf", None, ""),
        ("1.mp4 (fichier joint)", "1.mp4", Modality.VIDEO, ""),
    ],
)
def test_attached_files(text: str, name: str, kind: Modality | None, words: str) -> None:
    assert attachment(text) == (name, kind, words)


def test_marks_around_a_text_go_and_those_within_stay() -> None:
    assert unmarked(f"{LRM} \u202aInes\u202c Marte\u202f") == "Ines\u202c Marte"
    assert unmarked("@\u2068Tomas\u2069 hi") == "@\u2068Tomas\u2069 hi"
