/** A self-signed certificate for tests, written in DER by hand: Node can read certificates, but not issue them. */
import { generateKeyPairSync, sign } from 'node:crypto'

/** @param name the host that the certificate is for. @returns the key and the certificate as PEM. */
export function issueCertificate(name: string): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = node(0x30, Buffer.from('06082a8648ce3d040302', 'hex'))
  const commonName = node(0x30, Buffer.from('0603550403', 'hex'), node(0x0c, Buffer.from(name)))
  const subject = node(0x30, node(0x31, commonName))
  const validity = node(
    0x30,
    node(0x17, Buffer.from('200101000000Z')),
    node(0x17, Buffer.from('491231235959Z')),
  )
  const names = node(0x30, node(0x82, Buffer.from(name)))
  const alternativeName = node(0x30, Buffer.from('0603551d11', 'hex'), node(0x04, names))
  const body = node(
    0x30,
    node(0xa0, Buffer.from('020102', 'hex')),
    Buffer.from('020101', 'hex'),
    ecdsaWithSha256,
    subject,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    node(0xa3, node(0x30, alternativeName)),
  )
  const signature = node(0x03, Buffer.from([0]), sign('sha256', body, privateKey))
  const der = node(0x30, body, ecdsaWithSha256, signature)
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  }
}

function node(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
