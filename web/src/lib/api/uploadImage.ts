/** Uploads a picture. */
import { api, call } from './client';

/** Returns its address. */
export async function uploadImage(file: File): Promise<string> {
  const form = new FormData();
  form.append('image', file);
  const { image } = await call(
    api.POST('/api/image/upload', {
      body: form as never,
      bodySerializer: (body) => body as unknown as FormData,
    }),
  );
  return image.url;
}

/** What may be uploaded. */
export const IMAGE_TYPES = 'image/png,image/jpeg,image/webp,image/gif';
export const IMAGE_BYTES_MAX = 5 * 1024 * 1024;
