"""Certificates for tests, made by openssl as docs/controller.md says."""

import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA whose files, and those of the certificates it signs, are in ``folder``: NAME.pem and NAME.key."""

    def __init__(self, folder, name="ca", days=2):
        self.folder, self.name = folder, name
        self.pem = folder / f"{name}.pem"
        self._sign(
            folder / name, name, days, "basicConstraints=CA:TRUE\n", "-signkey", folder / f"{name}.key"
        )

    def sign(self, name, san="", *, common=None, days=2, more=""):
        """Sign a certificate of ``common`` (or ``name``) with subject alternative names ``san``.

        ``days`` -1: it has expired. Return the files, as [controller.tls] and [agent.tls] name them.
        """
        signer = ("-CA", self.pem, "-CAkey", self.folder / f"{self.name}.key", "-CAcreateserial")
        names = f"subjectAltName={san}\n" if san else ""
        file = self.folder / name
        self._sign(file, common or name, days, names + more, *signer)
        return {"cert": f"{file}.pem", "key": f"{file}.key", "ca": str(self.pem)}

    @staticmethod
    def _sign(file, common, days, extensions, *signer):
        Path(f"{file}.ext").write_text(extensions)
        openssl("req", *KEY, "-subj", f"/CN={common}", "-keyout", f"{file}.key", "-out", f"{file}.csr")
        openssl("x509", "-req", "-days", days, "-in", f"{file}.csr", "-out", f"{file}.pem",
                "-extfile", f"{file}.ext", *signer)  # fmt: skip
