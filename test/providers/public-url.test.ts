/** URLs that strangers choose: what is read, and which part of the others is refused. */
import { describe, expect, it } from 'vitest'
import { addressIsPublic, type PublicUrlRefusal, readPublicUrl } from '../../src/providers/public-url.ts'

const judge = (text: string, loopback = false) => {
  const read = readPublicUrl(text, { loopback })
  return 'url' in read ? read.url.href : read.refused
}

describe('URLs of the public internet', () => {
  it.each([
    ['https://seller.test/a?b=c', 'https://seller.test/a?b=c'],
    ['https://SELLER.test:8443/', 'https://seller.test:8443/'],
    ['https://seller.test:443/', 'https://seller.test/'],
    ['https://seller.test', 'https://seller.test/'],
    ['https://seller.test?q=1', 'https://seller.test/?q=1'],
    ['https://seller.test/a#part', 'https://seller.test/a'],
    ['https://seller.test/suche?q=größe', 'https://seller.test/suche?q=gr%C3%B6%C3%9Fe'],
    ['https://xn--bcher-kva.example/', 'https://xn--bcher-kva.example/'],
    ['https://93.184.216.34/', 'https://93.184.216.34/'],
    ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
    ['https://[2606:4700:4700:0:0:0:0:1111]:8443/', 'https://[2606:4700:4700::1111]:8443/'],
  ])('read %s', (text, href) => {
    expect(judge(text)).toBe(href)
    // What was read once is read again unchanged.
    expect(judge(href)).toBe(href)
  })

  it.each<[string, PublicUrlRefusal]>([
    ['http://seller.test/', 'scheme'],
    ['ftp://seller.test/', 'scheme'],
    ['javascript://seller.test/', 'scheme'],
    ['file:///etc/passwd', 'form'],
    ['https:seller.test', 'form'],
    ['https:/seller.test', 'form'],
    ['https:///seller.test', 'form'],
    ['//seller.test/', 'form'],
    ['seller.test', 'form'],
    ['', 'form'],
    ['https://u:p@seller.test/', 'credentials'],
    ['https://u@seller.test/', 'credentials'],
    ['https://@seller.test/', 'credentials'],
    ['https://seller.test@127.0.0.1/', 'credentials'],
    ['https://seller.test\\@127.0.0.1/', 'form'],
    ['https://seller.test/a\\b', 'form'],
    ['https://seller.test/\t', 'form'],
    [' https://seller.test/', 'form'],
    ['https://sel\nler.test/', 'form'],
    ['https://seller.test/\u202Etxt', 'form'],
    ['https://seller\u200B.test/', 'form'],
    ['https://seller.test:22/', 'port'],
    ['https://seller.test:80/', 'port'],
    ['https://seller.test:0/', 'port'],
    ['https://seller.test:1023/', 'port'],
    ['https://seller.test:99999/', 'form'],
    ['https://127.0.0.1/', 'address'],
    ['https://127.1/', 'host_form'],
    ['https://2130706433/', 'host_form'],
    ['https://0x7f000001/', 'host_form'],
    ['https://0x7f.1/', 'host_form'],
    ['https://0177.0.0.1/', 'host_form'],
    ['https://134744072/', 'host_form'],
    ['https://8.8.2056/', 'host_form'],
    ['https://①②⑦.⓪.⓪.①/', 'host_form'],
    ['https://127.0.0.1./', 'host_form'],
    ['https://93.184.216.34./', 'host_form'],
    ['https://%31%32%37.0.0.1/', 'host_form'],
    ['https://ｓeller.test/', 'host_form'],
    ['https://seller。test/', 'host_form'],
    ['https://bücher.example/', 'host_form'],
    ['https://ѕeller.test/', 'host_form'],
    ['https://0.0.0.0/', 'address'],
    ['https://10.1.2.3/', 'address'],
    ['https://100.64.0.1/', 'address'],
    ['https://169.254.169.254/', 'address'],
    ['https://192.168.1.1/', 'address'],
    ['https://198.18.0.1/', 'address'],
    ['https://224.0.0.1/', 'address'],
    ['https://255.255.255.255/', 'address'],
    ['https://[::1]/', 'address'],
    ['https://[::]/', 'address'],
    ['https://[::ffff:127.0.0.1]/', 'address'],
    ['https://[::ffff:8.8.8.8]/', 'address'],
    ['https://[::127.0.0.1]/', 'address'],
    ['https://[2002:7f00:1::]/', 'address'],
    ['https://[64:ff9b::7f00:1]/', 'address'],
    ['https://[64:ff9b:1::a00:1]/', 'address'],
    ['https://[2001:0:7f00:1::]/', 'address'],
    ['https://[fe80::1]/', 'address'],
    ['https://[fe80::1%25eth0]/', 'form'],
    ['https://[fc00::1]/', 'address'],
    ['https://[ff02::1]/', 'address'],
    ['https://[2001:db8::1]/', 'address'],
    ['https://localhost/', 'host_form'],
    ['https://localhost./', 'host_form'],
    ['https://seller.test./', 'host_form'],
    ['https://intranet/', 'host_form'],
    ['https://seller..test/', 'host_form'],
    ['https://-seller.test/', 'host_form'],
    [`https://seller.test/${'a'.repeat(2_100)}`, 'too_long'],
  ])('refuse %j for its %s', (text, refused) => {
    expect(judge(text)).toBe(refused)
  })

  it.each<[string, string]>([
    ['http://127.0.0.1:3000/a', 'http://127.0.0.1:3000/a'],
    ['http://localhost:80/a', 'http://localhost/a'],
    ['https://[::1]:22/', 'https://[::1]:22/'],
    ['https://seller.test/', 'https://seller.test/'],
    ['http://seller.test/', 'scheme'],
    ['http://127.0.0.2/', 'scheme'],
    ['https://127.0.0.2/', 'address'],
    ['http://2130706433/', 'host_form'],
    ['http://u:p@127.0.0.1/', 'credentials'],
    ['ftp://127.0.0.1/', 'scheme'],
    ['https://10.0.0.1/', 'address'],
    ['http://sub.localhost/', 'scheme'],
  ])('with loopback permitted, %s gives %s', (text, verdict) => {
    expect(judge(text, true)).toBe(verdict)
  })

  it('say in a sentence what was refused', () => {
    expect(readPublicUrl('https://2130706433/', { loopback: false })).toMatchObject({
      detail: 'The host must be written in its plain form, 127.0.0.1.',
    })
  })
})

describe('addresses', () => {
  it.each([
    ['127.0.0.1', false],
    ['10.1.2.3', false],
    ['172.31.255.255', false],
    ['172.32.0.1', true],
    ['192.168.1.1', false],
    ['192.88.99.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['100.128.0.1', true],
    ['0.0.0.0', false],
    ['224.0.0.1', false],
    ['255.255.255.255', false],
    ['93.184.216.34', true],
    ['::1', false],
    ['fe80::1', false],
    ['fe80::1%eth0', false],
    ['2606:2800::1%eth0', false],
    ['fd00::1', false],
    ['::ffff:127.0.0.1', false],
    ['64:ff9b::7f00:1', false],
    ['2002:7f00:1::', false],
    ['3fff::1', false],
    ['2606:2800:220:1:248:1893:25c8:1946', true],
    ['not an address', false],
  ])('%s is public: %s', (address, isPublic) => {
    expect(addressIsPublic(address)).toBe(isPublic)
  })
})
