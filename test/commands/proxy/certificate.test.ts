/** Certificates that the proxy writes, read by the parser of Node. */
import { createPublicKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadAuthority } from '../../../src/commands/proxy/authority.ts'
import { newCertificateKey, writeCertificate } from '../../../src/commands/proxy/certificate.ts'

const notBefore = new Date('2026-01-02T03:04:05Z')
const notAfter = new Date('2055-01-02T03:04:05Z')

describe('certificates', () => {
  it.each([
    ['example.com', 'DNS:example.com'],
    ['127.0.0.1', 'IP Address:127.0.0.1'],
    ['::1', 'IP Address:0:0:0:0:0:0:0:1'],
    ['2001:db8::a:1', 'IP Address:2001:DB8:0:0:0:0:A:1'],
    ['2001:db8:1:2:3:4:5:6', 'IP Address:2001:DB8:1:2:3:4:5:6'],
  ])('name %s, and are signed by the authority', (host, name) => {
    const [key, authorityKey] = [newCertificateKey(), newCertificateKey()]
    const authority = { key: authorityKey, name: 'Authority' }
    const issuer = new X509Certificate(
      writeCertificate({ key: authorityKey, name: 'Authority', host: null, authority, notBefore, notAfter }),
    )
    const leaf = new X509Certificate(
      writeCertificate({ key, name: 'Leaf', host, authority, notBefore, notAfter }),
    )
    expect([issuer.ca, leaf.ca]).toEqual([true, false])
    expect(leaf.checkIssued(issuer)).toBe(true)
    expect(leaf.verify(createPublicKey(authorityKey))).toBe(true)
    expect(leaf.checkPrivateKey(key)).toBe(true)
    expect(leaf.subjectAltName).toBe(name)
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect([new Date(leaf.validFrom), new Date(leaf.validTo)]).toEqual([notBefore, notAfter])
  })
})

describe('the authority', () => {
  it('is made once, and readable by its user only', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bursar-authority-'))
    const { pem } = loadAuthority(folder)
    expect(loadAuthority(folder).pem).toBe(pem)
    expect(readdirSync(folder)).toEqual(['authority.pem'])
    expect(statSync(join(folder, 'authority.pem')).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(folder, 'authority.pem'), 'utf8')).toContain('PRIVATE KEY')
  })
})
